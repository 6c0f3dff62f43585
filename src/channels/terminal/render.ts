/** Renders a run as text for people. Only the answer goes to stdout. */

import type { ClaimMark } from '../../host/contract/claim-mark.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { flat } from '../../kit/text.ts'
import type { AgentEvent, ContextUse, Ending, Usage } from '../../runtime/event.ts'
import { cachedShare } from '../../runtime/usage.ts'
import type { Printer } from './printer.ts'

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
}

/**
 * A terminal shows text while the model writes it, and not again when it is complete. A pipe or a file gets a reply only when it is
 * complete: its reader could not tell half a reply from an answer.
 */
export function createRender({ out, err, color, terminal }: Screen): Render {
  const dim = (line: string) => err.write(color ? [{ mark: 'dim' }, line, { mark: 'normal' }, '\n'] : `${line}\n`)
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
      else if (event.type === 'error')
        err.write(`${event.code === 'context.trimmed' ? 'note' : event.recoverable ? 'warning' : 'error'}: ${event.message}\n`)
    },
    end: () => {},
  }
}

/** Shortens foreign text to one line, so that a name cannot look like a separate line. */
function oneLine(words: string, most = 160): string {
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

/** Returns a line for each claim that is not proved, or one line that counts the proved ones; nothing for an answer without claims. */
export function proofLines(proof: readonly ClaimMark[]): readonly string[] {
  const doubtful = proof.filter(({ state }) => state !== 'proved')
  if (doubtful.length > 0) return doubtful.map(({ state, claim, why }) => oneLine(`${state}: "${claim}": ${why}`, 400))
  return proof.length === 0 ? [] : [`proved: ${proof.length} ${proof.length === 1 ? 'claim' : 'claims'}`]
}

/** Formats `1,234 tokens in (60% cached), 56 out, $0.0021`; undefined when nothing was used, as with the offline helper. */
export function usageLine(usage: Usage | undefined): string | undefined {
  if (usage === undefined || usage.inputTokens + usage.outputTokens === 0) return undefined
  const { inputTokens, outputTokens, costMicros } = usage
  const money = costMicros === undefined ? '' : `, ${dollars(costMicros)}`
  const cached = usage.cachedInputTokens ? ` (${Math.round(cachedShare(usage) * 100)}% cached)` : ''
  return `${counted(inputTokens)} ${inputTokens === 1 ? 'token' : 'tokens'} in${cached}, ${counted(outputTokens)} out${money}`
}

function counted(tokens: number): string {
  return tokens.toLocaleString('en')
}

/** Rounds to a hundredth of a cent below one dollar, and to a cent from one dollar up. */
function dollars(micros: number): string {
  const whole = micros / 1_000_000
  return micros > 0 && micros < 100 ? 'less than $0.0001' : `$${whole.toFixed(whole < 1 ? 4 : 2)}`
}
