/** Finds the step at which the last turn of a conversation continues: the first one without a receipt. */

import type { RunRecord } from '../../memory/journal/journal.ts'
import type { Memory } from '../../memory/memory.ts'
import { outcomeUnknown } from '../../memory/recovery/interrupted-runs.ts'
import { broughtBy } from '../../runtime/behaviours/start-events.ts'
import { progressAfter } from '../../runtime/behaviours/wiggum/progress.ts'
import type { Interrupted, Proposal, RunEvent, ToolOutcome, Usage } from '../../runtime/event.ts'
import { textOf } from '../../runtime/project.ts'
import { consequenceIn, externalOf, type ReplayEntry } from '../../runtime/replay/external-entry.ts'
import { addUsage } from '../../runtime/usage.ts'
import type { InterruptedTurn } from '../api.ts'

export type TurnOptions = {
  readonly memory: Pick<Memory, 'journal' | 'conversations'>
  readonly conversationId: string
  /** The real path. */
  readonly workspace: string
  /** The turn ends when its checks pass: whatever else ended it, it can continue. */
  readonly hasChecks?: boolean
  /** Returns whether a tool may run again after a crash. */
  readonly isIdempotent: (tool: string) => Promise<boolean>
}

/** @returns why nothing can continue, if so */
export async function interruptedTurn({
  memory,
  conversationId,
  isIdempotent,
  workspace,
  hasChecks,
}: TurnOptions): Promise<InterruptedTurn | string> {
  const { journal, conversations } = memory
  const run = journal.latestTurn(conversationId)
  if (run === undefined) return 'nothing was asked in this conversation yet'
  const isOpen = run.ended === null || journal.unfinished().some(({ runId }) => runId === run.runId)
  if (isOpen) return `its last turn (${run.runId}) is under way, or its changes are not settled yet`
  const canGoOn = ranOut.includes(run.code ?? '') || (hasChecks && run.code !== 'answered')
  if (!diedOf(run) && !canGoOn) return `its last turn (${run.runId}) ${whyOver(run)}`
  const folder = conversations.folderOf(conversationId) ?? workspace
  if (folder !== workspace) return `it belongs to the folder ${folder}, and its calls are not repeated in ${workspace}; continue there (-C)`
  const last = lastStep(journal.events(run.runId))
  if (last === undefined) return `the journal of its last turn (${run.runId}) was cleared`
  const { proposals, ends, asked, allowedTools, note, count } = last
  const wiggum = wiggumOf(last, diedOf(run) !== undefined)
  const again: Proposal[] = []
  const unknown: Proposal[] = []
  for (const one of proposals) {
    const end = ends.get(one.call.id) ?? 'open'
    const isHarmless = end === 'open' || leftNothing(one, end) || (end === 'unknown' && (await isIdempotent(one.call.name)))
    if (isHarmless) again.push(one)
    else if (end === 'unknown') unknown.push(one)
  }
  return {
    calls: count,
    diedOf: diedOf(run),
    unknown,
    continueWith(answers) {
      const isMade = (one: Proposal) => again.includes(one) || answers.get(one.call.id) === 'again'
      const lines = unknown.filter((one) => !isMade(one)).map((one) => sentence(one, answers.get(one.call.id)))
      const prompt = [note, ...(lines.length === 0 ? [] : [`[BraidClaw: this turn was interrupted and continues. ${lines.join(' ')}]`])]
      const continues = { run: run.runId, asked, allowedTools, proposals: proposals.filter(isMade), ...(wiggum ? { wiggum } : {}) }
      return { prompt: prompt.filter(Boolean).join('\n'), continues }
    },
  }
}

const ranOut: readonly string[] = ['limit', 'budget', 'timeout', 'provider']

/** Returns what ended the run from outside: its process died, or a signal stopped it. */
function diedOf({ code, digest, message }: RunRecord): string | undefined {
  if (code === 'error' && digest === null) return 'its process ended'
  const [, signal] = code === 'cancelled' ? (/^cancelled by (SIGTERM|SIGHUP)$/.exec(message ?? '') ?? []) : []
  return signal && `it was stopped (${signal})`
}

function whyOver({ code, message }: RunRecord): string {
  if (code === 'answered') return 'was answered'
  if (code === 'denied' || code === 'approval_needed') return `was answered after a refusal: ${message}`
  return `ended for good (${code}): ${message}`
}

/** A command on a private view without network reached nothing when its process died: the view went with it. */
function leftNothing({ judgement: { rule, labels = [] } }: Proposal, end: End): boolean {
  const hadView = end === 'dropped' || (end === 'unknown' && ['autonomy.transaction', 'autonomy.dropped'].includes(rule))
  return hadView && !labels.includes('sends')
}

/** The end of a call; `open`: it never began; `dropped`: the crash took what it had changed on its view. */
type End = 'open' | 'unknown' | 'dropped' | 'known'

type LastStep = {
  readonly asked: string
  readonly allowedTools?: readonly string[] | undefined
  /** The calls of the last reply; none when the model had read their results. */
  readonly proposals: readonly Proposal[]
  readonly ends: ReadonlyMap<string, End>
  /** A note that the model has not answered yet. */
  readonly note: string
  /** How many calls of the run have ended. */
  readonly count: number
  readonly progress: Interrupted | null
  readonly used?: Usage
  readonly said?: string
}

/** Counts on what a run had used, and its failures in a row, if its process died; a run that a limit ended may go on for a while. */
function wiggumOf({ progress, used, said }: LastStep, died: boolean): Interrupted | undefined {
  if (progress === null) return undefined
  const { tokens = 0, micros = 0 } = progress
  const { inputTokens = 0, outputTokens = 0, costMicros = 0 } = used ?? {}
  const text = said || progress.text
  if (!died) return { ...progress, text, same: { key: '', times: 0 }, tokens: 0, micros: 0 }
  return { ...progress, text, tokens: tokens + inputTokens + outputTokens, micros: micros + costMicros }
}

function lastStep(entries: readonly ReplayEntry[]): LastStep | undefined {
  let step: LastStep | undefined
  for (const entry of entries) {
    const event = externalOf(entry)
    if (event?.type === 'run.start') {
      const [asked, note] = event.continues ? [event.continues.asked, event.prompt] : [event.prompt, '']
      const { allowedTools } = event
      step = { asked, allowedTools, note, proposals: broughtBy(event) ?? [], ends: new Map(), count: 0, progress: null }
    } else if (step && event && broughtBy(event)) step = { ...step, note: '', proposals: broughtBy(event) ?? [], ends: new Map() }
    const ended = endIn(entry)
    const selected = event ?? consequenceIn(entry)
    if (event?.type === 'model.done') step = step && { ...step, said: textOf(event.parts) }
    if (step && selected) step = { ...step, progress: progressAfter(step.progress, selected), used: usedAfter(step, selected) }
    if (step && ended) step = { ...step, ends: new Map([...step.ends, ended]), count: step.count + 1 }
  }
  return step
}

function usedAfter({ used }: LastStep, event: RunEvent): Usage | undefined {
  return (event.type === 'model.done' || event.type === 'context.trimmed') && event.usage ? addUsage(used, event.usage) : used
}

/** These refused a call only because the run was about to end. */
const stops: readonly string[] = ['cancel', ...ranOut, 'limits.max_tool_rounds']

function endIn(entry: ReplayEntry): readonly [string, End] | undefined {
  const event = externalOf(entry) ?? consequenceIn(entry)
  if (event?.type === 'tool.done') return [event.id, endOf(event.outcome)]
  if (event?.type === 'deny') return [event.id, stops.includes(event.by) ? 'open' : 'known']
  return event?.type === 'drop' ? [event.id, event.by === 'interrupted' ? 'dropped' : 'known'] : undefined
}

function endOf({ error, metadata }: ToolOutcome): End {
  if (error === outcomeUnknown) return 'unknown'
  return error?.startsWith('interrupted: ') && metadata?.changes === 'dropped' ? 'dropped' : 'known'
}

function sentence({ judgement: { summary } }: Proposal, answer: string | undefined): string {
  if (answer === 'done') return `The person says that this call was done: ${summary}.`
  if (answer === 'skip') return `The person does not want this call to be repeated: ${summary}.`
  return `Nobody knows whether this call was done, so check before you repeat it: ${summary}.`
}
