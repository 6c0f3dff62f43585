/** Renders a run as text for people. Only the answer goes to stdout. */

import type { ClaimMark } from '../../host/contract/claim-mark.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { flat } from '../../kit/text.ts'
import type { AgentEvent, ContextUse, Ending, Usage } from '../../runtime/event.ts'
import type { Printed, Printer } from './printer.ts'

export type OutputFormat = 'text' | 'json' | 'stream-json'

export type Render = {
  show(event: AgentEvent): void
  /** Prints the rest after the run. */
  end(summary: RunSummary): void
}

export type RunSummary = {
  readonly ending: Ending
  readonly exitCode: number
  readonly runId: string
  readonly conversationId: string
  /** The model's window, the tokens of the last request, and how often the turn was trimmed. */
  readonly context: ContextUse | undefined
  /** Counts the model calls; absent when there was none. */
  readonly usage: Usage | undefined
  /** `provider/model`, as the turn asked it. */
  readonly model: string
  readonly durationMs: number
  /** More members for the JSON. */
  readonly more?: { readonly [name: string]: unknown }
  /** The claims of the answer, each with what the turn proves. */
  readonly proof?: readonly ClaimMark[]
}

export type Screen = {
  readonly out: Pick<Printer, 'write' | 'data' | 'stream'>
  readonly err: Pick<Printer, 'write'>
  readonly color: boolean
  /** Tells whether stdout is a terminal. */
  readonly terminal: boolean
  /** Prints the output of each call below its line. */
  readonly showOutput?: boolean | undefined
}

/**
 * A plain terminal shows text while the model writes it, and not again when it is complete. A pipe or a file gets a reply only when it is
 * complete: its reader could not tell half a reply from an answer.
 */
export function createRender({ out, err, color, terminal, showOutput }: Screen): Render {
  const dim = (line: string) => err.write(dimmed(line, color, '\n'))
  /** `ahead` is the text already shown but not yet complete. */
  const state = { ahead: '', column: 0 }
  const say = (print: (words: string) => void, words: string) => {
    print(words)
    state.column = words.endsWith('\n') ? 0 : 1
  }
  const beginLine = () => {
    if (state.column > 0) say(out.data, '\n')
  }
  const complete = (words: string) => {
    const shown = state.ahead.startsWith(words)
    state.ahead = shown ? state.ahead.slice(words.length) : ''
    if (!shown) say(out.data, words)
    if (state.ahead === '') beginLine()
  }
  return {
    show(event) {
      if (event.type === 'text' && event.isPartial) {
        if (!terminal) return
        state.ahead += event.content
        say(out.stream, event.content)
        return
      }
      if (event.type === 'text') return complete(event.content)
      if (!['tool_use', 'tool_result', 'error', 'done'].includes(event.type)) return
      beginLine()
      if (event.type === 'tool_use') dim(`· ${oneLine(event.toolName || '(no name)')} ${oneLine(JSON.stringify(event.input))}`)
      else if (event.type === 'tool_result' && event.status === 'failed') dim(`✗ ${oneLine(String(event.output ?? ''))}`)
      else if (showOutput && event.type === 'tool_result') err.write(`${event.output}\n`)
      else if (event.type === 'error') err.write(errorLine(event))
    },
    end: () => {},
  }
}

export function errorLine({ code, recoverable, message }: Extract<AgentEvent, { type: 'error' }>): string {
  return `${code === 'context.trimmed' ? 'note' : recoverable ? 'warning' : 'error'}: ${message}\n`
}

/** Returns the words in a darker tone; without `color` as they are. */
export function dimmed(words: string, color: boolean, end = ''): Printed {
  return color ? [{ mark: 'dim' }, words, { mark: 'normal' }, end] : `${words}${end}`
}

/** Shortens foreign text to one line, so that a name cannot look like a separate line. */
export function oneLine(words: string, most = 160): string {
  const line = flat(escapeHidden(words))
  return line.length > most ? `${line.slice(0, most - 3)}…` : line
}

/**
 * At a terminal it renders as usual. Otherwise stdout gets exactly the final answer and a newline; all else goes to stderr.
 */
export function renderWhole(_: OutputFormat, screen: Screen): Render {
  if (screen.terminal) return createRender(screen)
  const rest = createRender({ ...screen, out: { write: nothing, data: nothing, stream: nothing } })
  const state: { answer?: string } = {}
  return {
    show(event) {
      rest.show(event)
      if (event.type === 'done') state.answer = event.result
    },
    end({ ending }) {
      const { answer = '' } = state
      // Text that the model produced before it failed is not its answer.
      if (ending.code === 'provider' || ending.code === 'timeout') return
      if (answer !== '') screen.out.data(answer.endsWith('\n') ? answer : `${answer}\n`)
    },
  }
}

function nothing(): void {}
