/** Runs one turn at the command line: it chooses the output, asks the person, handles Ctrl-C, and returns the exit code. */

import type { Conversation } from '../../host/api.ts'
import { isOffline } from '../../host/setup/answering-provider.ts'
import { atEnd, errorText } from '../../kit/errors.ts'
import type { AgentEvent, Ending } from '../../runtime/event.ts'
import type { Picture } from '../../runtime/port.ts'
import { type ChannelTurn, continueTurn, takeTurn } from '../take-turn.ts'
import type { AskPerson } from './approval-prompt.ts'
import { atTerminal, tellOnStderr } from './audience.ts'
import type { CliContext, CliSetup } from './context.ts'
import type { Folds } from './markdown/terminal-render.ts'
import { wantsColor } from './printer.ts'
import { createRender, dimmed, type OutputFormat, type Render, type Screen } from './render.ts'
import { onInterrupt } from './signals.ts'
import type { StatusLine } from './status-line.ts'
import { isTerminal } from './tty.ts'

export type TurnOptions = {
  readonly conversation: Conversation
  readonly setup: CliSetup
  readonly format: OutputFormat
  /** Absent: continues the last turn. */
  readonly prompt?: string | undefined
  readonly pictures?: readonly Picture[] | undefined
  /** The operator's own text: files that it names with "@" are added. Absent: nothing is looked for. */
  readonly words?: string | undefined
  /** Calls of the operator in place of those that `words` name. */
  readonly own?: ChannelTurn['own']
  readonly ask?: AskPerson
  /** Replaces the usual renderer of the format. */
  readonly renderer?: (format: OutputFormat, screen: Screen) => Render
  /** True: at a terminal, print what the turn used. */
  readonly sayUsage?: boolean
  /** Prints the output of each call below its line. */
  readonly showOutput?: boolean | undefined
  /** Keeps what was folded, for the keys that open it. */
  readonly folds?: Folds
}

/** @returns the exit code. */
export async function turn(options: TurnOptions): Promise<number> {
  const { conversation, format, prompt, ask, renderer, setup, folds, showOutput } = options
  const { context } = setup
  const begin = performance.now()
  const asked = prompt === undefined ? await continueTurn(conversation, ask) : { prompt, pictures: options.pictures }
  const screen = { ...screenOf(context), showOutput }
  const status = format === 'text' && showsStatus(context, screen) ? context.status : nowhere
  const usual = renderer ? renderer(format, screen) : await renderOf(context, { showOutput, folds })
  const notes = format === 'text' && isTerminal(2) && context.env.TERM !== 'dumb' ? await turnNotes() : undefined
  const { own, render: plain } = await withOwnCalls(options, usual, screen)
  const render = withActivity(plain, status, () => notes?.workFacts(conversation.usage()) ?? [])
  using interrupt = onInterrupt(conversation.cancel)
  const { signal } = interrupt
  const asking = ask && pausing(ask, render.paused)
  using _end = atEnd(status.end)
  let answer: string | undefined
  const show = (event: AgentEvent) => {
    if (event.type === 'done') answer = event.result
    render.show(event)
  }
  const ending = await takeTurn({ ...atTerminal({ context, conversation, ask: asking, signal }), ...asked, own, show })
  const proof = await conversation.proof(answer)
  const exitCode = context.exitCodeOf(ending.code)
  const withAdvice = ending.code === 'approval_needed' ? (await turnNotes()).addApprovalAdvice(conversation, ending) : ending
  render.end({
    ending: withAdvice,
    exitCode,
    runId: conversation.runId() ?? '',
    conversationId: conversation.id,
    context: conversation.context(),
    usage: conversation.usage(),
    model: conversation.model,
    durationMs: Math.round(performance.now() - begin),
    proof,
  })
  if (format === 'text') explain(context, withAdvice)
  const saysUsage = options.sayUsage && !isOffline(setup.config, setup.config.defaultProvider)
  if (notes) sayBelow(context, screen, [...notes.proofLines(proof), saysUsage ? notes.usageLine(conversation.usage()) : undefined])
  status.begin('summarising')
  if (exitCode === 0) await conversation.compact({ tell: tellOnStderr(context), signal })
  return exitCode
}

/** Finds the files that the operator's words name, and shows the operator's own calls in short. It loads what that needs only when it is needed. */
async function withOwnCalls({ own, words = '', conversation, format }: TurnOptions, render: Render, { out, err }: Screen) {
  if (own === undefined && !/(?:^|[\s(])@\S|\.(?:png|jpe?g|webp|gif)/i.test(words)) return { render }
  const { mentionsIn, showCalls } = await import('../inbox/mentions.ts')
  const unread = (error: unknown) => ({ calls: [], notes: [errorText(error)] })
  const { calls, notes } = own ? { ...own, notes: [] } : await conversation.tools().then((tools) => mentionsIn(words, tools), unread)
  for (const note of notes) err.write(`note: not all was added to the message: ${note}\n`)
  const show = format === 'text' ? showCalls(calls, { show: render.show, out: out.write, err: err.write }) : render.show
  return { render: { ...render, show }, own: own ?? { calls } }
}
const turnNotes = () => import('./screen/usage-line.ts')

/** Hides the status line while the person answers. */
function pausing(ask: AskPerson, paused: <T>(question: Promise<T>) => Promise<T>): AskPerson {
  return Object.assign((...asked: Parameters<AskPerson>) => paused(ask(...asked)), {
    edit: (files: readonly string[]) => paused(ask.edit(files)),
  })
}

const nowhere = { begin: () => {}, end: () => {} }

/** Users who turned colour off or read the log as JSON lines get no line that is drawn and erased again. */
function showsStatus({ env }: CliContext, { color }: Screen): boolean {
  return color && !env.BRAIDCLAW_LOG?.startsWith('json')
}

/** Writes what only a person reads below the answer; a program has it in JSON. */
function sayBelow({ process: { stderr } }: CliContext, { color }: Screen, lines: readonly (string | undefined)[]): void {
  for (const line of lines) if (line) stderr.write(dimmed(line, color, '\n'))
}

/** Writes one line to stderr when the answer alone would hide a problem. */
function explain({ process: { stderr }, outputClosed, outputFailure }: CliContext, { code, message }: Ending): void {
  if (code === 'denied') stderr.write(`denied: ${message}\n`)
  else if (code === 'approval_needed') stderr.write(`approval needed: ${message}\n`)
  else if (code === 'estop') stderr.write('stopped: "braidclaw estop --clear" lets tools run again\n')
  // A failed stdout is a separate error, which is reported at the end.
  else if (code === 'cancelled' && outputFailure() === undefined)
    stderr.write(outputClosed() ? 'cancelled: nobody reads stdout any more\n' : 'cancelled\n')
}

/** Returns the streams of the command line as a screen. */
export function screenOf({ process: { stdout, stderr }, env }: CliContext): Screen {
  const terminal = isTerminal(1)
  return { out: stdout, err: stderr, terminal, color: isTerminal(2) && wantsColor(env) }
}

/** Returns the render of a format. A person at a terminal gets Markdown with its unfinished end; loading it costs other turns nothing. */
export async function renderOf(context: CliContext, more: Pick<TurnOptions, 'folds' | 'showOutput'> = {}): Promise<Render> {
  const screen = { ...screenOf(context), ...more }
  const { TERM, BRAIDCLAW_LOG = '' } = context.env
  if (!screen.terminal || !isTerminal(2) || TERM === 'dumb' || BRAIDCLAW_LOG.startsWith('json')) return createRender(screen)
  return (await import('./markdown/terminal-render.ts')).terminalRender({ ...screen, status: context.status })
}

/** Wraps a render so that the status line shows the current activity and the time of the whole turn. `paused` hides the line while a question is open. */
export function withActivity(
  render: Render,
  status: Pick<StatusLine, 'begin' | 'end'>,
  facts: () => readonly string[] = () => [],
): Render & { paused<T>(question: Promise<T>): Promise<T> } {
  const running = new Map<string, string>()
  const since = Date.now()
  const go = () => status.begin(labelOf([...running.values()]), facts, since)
  const follow = (event: AgentEvent) => {
    if (event.type === 'tool_use') running.set(event.toolCallId, event.toolName)
    else if (event.type === 'tool_result') running.delete(event.toolCallId)
    else if (event.type !== 'init') return
    go()
  }
  return {
    show(event) {
      if (event.type === 'done') status.end()
      render.show(event)
      follow(event)
    },
    end(summary) {
      status.end()
      render.end(summary)
    },
    async paused(question) {
      status.end()
      using _end = atEnd(go)
      return await question
    },
  }
}

function labelOf(tools: readonly string[]): string {
  const [only = 'thinking'] = tools
  return tools.length > 1 ? `${tools.length} tools` : only
}
