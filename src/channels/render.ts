/** How a run looks: text for people, one JSON object, or one AgentEvent a line. The answer alone goes to stdout. */

import { flat, isPlain } from '../kit/plain.ts'
import type { AgentEvent, Ending } from '../runtime/event.ts'

export type OutputFormat = 'text' | 'json' | 'stream-json'

export type Render = {
  show(event: AgentEvent): void
  /** After the run: what is left to print. */
  end(summary: RunSummary): void
}

export type RunSummary = { readonly ending: Ending; readonly exitCode: number; readonly runId: string; readonly conversationId: string }

export type Screen = {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly color: boolean /** stdout is a terminal: then nothing that is printed may drive it */
  readonly terminal: boolean
}

export function createRender(format: OutputFormat, screen: Screen): Render {
  if (format === 'stream-json') return streamJson(screen)
  return format === 'json' ? oneJson(screen) : text(screen)
}

function streamJson({ out }: Screen): Render {
  return { show: (event) => out(`${JSON.stringify(event)}\n`), end: () => {} }
}

function oneJson({ out }: Screen): Render {
  const seen: { result?: string; tools: { name: string; status?: string }[]; errors: { code: string; message: string }[] } = {
    tools: [],
    errors: [],
  }
  const ids: string[] = []
  return {
    show(event) {
      if (event.type === 'tool_use') {
        ids.push(event.toolCallId)
        seen.tools.push({ name: event.toolName })
      } else if (event.type === 'tool_result') {
        const tool = seen.tools[ids.indexOf(event.toolCallId)]
        if (tool) tool.status = event.status
      } else if (event.type === 'error') seen.errors.push({ code: event.code, message: event.message })
      else if (event.type === 'done' && event.result !== undefined) seen.result = event.result
    },
    end({ ending, exitCode, runId, conversationId }) {
      const { result, tools, errors } = seen
      out(
        `${JSON.stringify({ result: result ?? null, ending: ending.code, stopReason: ending.stop, message: ending.message, exitCode, runId, conversationId, tools, errors })}\n`,
      )
    },
  }
}

/**
 * A terminal shows text while it is written, and not again when it is complete. A pipe or a file gets a reply once it is whole: its reader
 * could not tell half of one from an answer.
 */
function text({ out, err, color, terminal }: Screen): Render {
  const safe = (words: string) => (terminal ? printable(words) : words)
  const dim = (line: string) => (color ? `\u001b[2m${line}\u001b[22m` : line)
  /** `ahead` is what was shown of texts that are not complete yet. */
  const state = { ahead: '', column: 0 }
  const say = (words: string) => {
    out(words)
    state.column = words.endsWith('\n') ? 0 : 1
  }
  const line = (words: string) => {
    if (state.column > 0) say('\n')
    err(`${words}\n`)
  }
  const complete = (words: string) => {
    const shown = state.ahead.startsWith(words)
    state.ahead = shown ? state.ahead.slice(words.length) : ''
    if (!shown) say(safe(words))
    if (state.column > 0 && state.ahead === '') say('\n')
  }
  return {
    show(event) {
      if (event.type === 'text' && !event.isPartial) complete(event.content)
      else if (event.type === 'text' && terminal) {
        state.ahead += event.content
        say(safe(event.content))
      } else if (event.type === 'tool_use') line(dim(`· ${event.toolName || '(no name)'} ${oneLine(JSON.stringify(event.input))}`))
      else if (event.type === 'tool_result' && event.status === 'failed') line(dim(`✗ ${oneLine(String(event.output ?? ''))}`))
      else if (event.type === 'error') line(`${event.recoverable ? 'warning' : 'error'}: ${printable(event.message)}`)
      else if (event.type === 'done' && state.column > 0) say('\n')
    },
    end: () => {},
  }
}

/** What a model or a tool says must not drive the terminal: control characters other than newline and tab become visible. */
export function printable(words: string): string {
  if (isPlain(words)) return words
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return words.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) =>
    character === '\r' ? '' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function oneLine(words: string): string {
  const line = flat(printable(words))
  return line.length > 160 ? `${line.slice(0, 157)}…` : line
}
