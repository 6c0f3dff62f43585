/** Shows a run at a terminal: Markdown while it streams, a line for each call, thoughts and outputs folded until a key opens them. */

import type { ShownLine } from '../../../host/changes/change-lines.ts'
import { diffTexts } from '../../../host/changes/hunks.ts'
import { isObject } from '../../../kit/json.ts'
import { count } from '../../../kit/text.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import { coloured, type Printed } from '../printer.ts'
import { errorLine, oneLine, type Render, type Screen } from '../render.ts'
import { createLiveArea } from '../screen/live-area.ts'
import { cutTo, type StatusLine } from '../status-line.ts'
import { printedRow } from './rows.ts'
import { createMarkdown } from './stream.ts'

/** Holds what was folded last; the conversation keeps it from turn to turn. */
export type Folds = { output?: Printed; thinking?: Printed }

/** Returns what a key opens, or a line that says that there is nothing. */
export function openFold(folds: Folds, which: keyof Folds): Printed {
  return folds[which] ?? `no ${which} is folded\n`
}

export type TerminalScreen = Screen & {
  readonly status: Pick<StatusLine, 'attach' | 'area' | 'put' | 'columns'>
  readonly folds?: Folds | undefined
}

type ToolUse = Extract<AgentEvent, { type: 'tool_use' }>
type ToolResult = Extract<AgentEvent, { type: 'tool_result' }>

export function terminalRender({ out, err, color, status, folds, showOutput }: TerminalScreen): Render {
  const columns = () => status.area()?.columns() ?? Math.max(2, status.columns())
  const markdown = createMarkdown(() => ({ columns: columns(), color }))
  const state = { ahead: '' }
  const calls = new Map<string, ToolUse>()
  const row = (line: string) => printedRow([{ text: cutTo(line, columns()), style: ['dim'] }], { columns: columns(), color })
  const dim = (line: string) => [...row(line), '\n']
  const live = unfinishedRows(status, () => [...calls.values()].map((call) => row(`· ${callLine(call)}`)))
  const show = (rows: ReturnType<typeof markdown.push>, tail: readonly Printed[]) =>
    live(tail, rows.length > 0 ? () => out.write(rows.flatMap((row) => [...row, '\n'])) : undefined)
  const endText = () => {
    show(markdown.end(), [])
    state.ahead = ''
  }
  const complete = (words: string) => {
    const isShown = state.ahead.startsWith(words)
    if (!isShown) {
      endText()
      show(markdown.push(words), [])
    }
    state.ahead = isShown ? state.ahead.slice(words.length) : ''
    if (state.ahead === '') endText()
  }
  const ended = (result: ToolResult) => {
    const call = calls.get(result.toolCallId)
    calls.delete(result.toolCallId)
    if (!call) return
    const line = `${result.status === 'failed' ? '✗' : '·'} ${callLine(call)} · ${resultOf(call, result)}`
    live([], () => err.write(dim(line)))
    const output = coloured(outputLines(String(result.output ?? '')), color)
    if (folds) folds.output = [...dim(callLine(call)), ...output]
    if (showOutput) err.write(output)
  }
  return {
    show(event) {
      if (event.type === 'text' && event.isPartial) {
        state.ahead += event.content
        return show(markdown.push(event.content), markdown.tail())
      }
      if (event.type === 'text') return complete(event.content)
      if (event.type === 'iteration') return
      // The first rendering costs more than a frame; here it takes place while the request is on its way.
      if (event.type === 'init') return void [markdown.push('*a* `b`'), markdown.tail(), markdown.end()]
      endText()
      if (event.type === 'tool_use') calls.set(event.toolCallId, event)
      // The question stands alone on the screen.
      else if (event.type === 'approval_gate') status.area()?.set('tail', [])
      else if (event.type === 'tool_result') ended(event)
      else if (event.type === 'thinking') {
        const lines = event.content.split('\n').map((text): ShownLine => ({ tone: 'note', text }))
        if (folds) folds.thinking = coloured(lines, color)
        err.write(dim(`∴ ${oneLine(event.content.trim(), 400)}`))
      } else if (event.type === 'error') err.write(errorLine(event))
      if (event.type === 'tool_use') live([])
    },
    end: endText,
  }
}

/**
 * Prints what is final, above the tail. A conversation has an area for its unfinished rows; without one they get an area for as long as the
 * text streams.
 */
function unfinishedRows(status: TerminalScreen['status'], running: () => readonly Printed[]) {
  const state: { own?: ReturnType<typeof createLiveArea> | undefined } = {}
  return (tail: readonly Printed[], print?: () => void): void => {
    if (!status.area() && tail.length > 0) {
      // Few rows, since the height of the terminal is not known.
      state.own = createLiveArea({ put: status.put, size: () => [status.columns(), 8] })
      status.attach(state.own)
    }
    status.area()?.[print ? 'hold' : 'set']('tail', [...(state.own ? [] : running()), ...tail])
    print?.()
    if (!state.own || tail.length > 0) return
    state.own.close()
    state.own = undefined
    status.attach()
  }
}

/** Returns `shell npm test`: the name, and of the input what says most. */
function callLine({ toolName, input }: ToolUse): string {
  return `${oneLine(toolName || '(no name)')} ${oneLine(briefInput(toolName, input))}`.trimEnd()
}

const telling = /^(?:command|path|pattern|glob|url|query|intent|action|question)$/

function briefInput(toolName: string, input: unknown): string {
  if (!isObject(input)) return JSON.stringify(input) ?? ''
  const words = Object.entries(input).flatMap(([key, value]) => {
    // The result counts their lines.
    if (/^file_(?:edit|write)$/.test(toolName) && /^(?:old|new|content)$/.test(key)) return []
    if (typeof value === 'string' && telling.test(key)) return value
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return text.length > 40 || text.includes('\n') ? `${key}=…` : `${key}=${text}`
  })
  return words.join(' ')
}

/** Returns `exit 0, 12 lines`, `+4 −1`, `denied: …`. */
function resultOf({ toolName, input }: ToolUse, { status, output }: ToolResult): string {
  const [first = '', ...more] = String(output ?? '')
    .trimEnd()
    .split('\n')
  const lines = (number: number) => count(number, 'line')
  if (status === 'failed') {
    const denied = /^Denied by [^:]*: (.*)$/.exec(first)?.[1]
    if (denied !== undefined) return oneLine(`denied: ${denied}`)
    return oneLine(first) + (more.length > 0 ? `, ${lines(more.length)}` : '')
  }
  const { old = '', new: text = '', content } = (isObject(input) ? input : {}) as { readonly [key: string]: string | undefined }
  if (toolName === 'shell') return first === '(no output)' ? 'exit 0' : `exit 0, ${lines(more.length + 1)}`
  if (toolName === 'file_list') return count(more.length + 1, 'path')
  if (toolName === 'file_edit' || toolName === 'file_write') {
    const { added, removed } = diffTexts(String(old), String(content ?? text))
    return toolName === 'file_edit' ? `+${added} −${removed}` : lines(added)
  }
  return more.length === 0 ? oneLine(first, 60) : lines(more.length + 1)
}

/** Gives the lines of a unified diff their tones. */
function outputLines(output: string): readonly ShownLine[] {
  const isDiff = /^(?:diff --git |--- .*\n\+\+\+ )/m.test(output)
  const toneOf = (text: string): ShownLine['tone'] => {
    if (!isDiff) return 'plain'
    if (/^(?:diff --git|index|---|\+\+\+) /.test(text)) return 'header'
    return ({ '+': 'added', '-': 'removed', '@': 'place' } as const)[text.charAt(0) as '+'] ?? 'plain'
  }
  return output
    .replace(/\n$/, '')
    .split('\n')
    .map((text) => ({ tone: toneOf(text), text: `  ${text}` }))
}
