/**
 * Evaluates another policy against a past run: judges every call and every change set again, and finds the first point where the run would
 * have diverged.
 */

import type { AnyThread } from '../../kernel/thread.ts'
import { broughtBy } from '../behaviours/start-events.ts'
import type { ChangeReview } from '../changes.ts'
import type { Call, ExternalEvent, Judgement, Proposal, RunEvent } from '../event.ts'
import { program, type RunLimits } from '../program.ts'
import { createProgram } from '../super-step.ts'
import type { PreparedThread } from '../threads/prepare-thread.ts'
import { externalOf, type ReplayEntry } from './external-entry.ts'
import { missingThreads } from './journal-reader.ts'

type JudgementSummary = Pick<Judgement, 'verdict' | 'risk' | 'rule' | 'reason'>

/** `event` counts the run's entries from 1; it is the entry of the reply that requested the call. */
export type Rejudged = {
  readonly event: number
  readonly id: string
  readonly tool: string
  readonly summary: string
  readonly before: JudgementSummary
  readonly after: JudgementSummary
  readonly changed: boolean
}

/** `after` is absent when the list of changes was deleted: the recorded review then stays in force. */
export type RejudgedChanges = Pick<Rejudged, 'event' | 'id' | 'tool' | 'summary' | 'changed'> & {
  readonly before: ChangeVerdict
  readonly after?: ChangeVerdict
}

type ChangeVerdict = Pick<ChangeReview, 'verdict' | 'rule' | 'reason'>

export type Rejudgement = {
  readonly calls: readonly Rejudged[]
  /** The changes that calls made; absent when no call of the run changed anything on a private view. */
  readonly changes?: readonly RejudgedChanges[]
  /** Absent when nothing would have changed. What follows a divergence is unknown, because the model would have seen something else. */
  readonly divergence?: { readonly before: string; readonly after: string }
  /** Threads that the run had and that are not available; without them the divergence is unknown. */
  readonly missing?: readonly string[]
}

export type RejudgeInput = {
  readonly entries: readonly ReplayEntry[]
  readonly limits: RunLimits
  readonly rules?: readonly AnyThread<RunEvent>[]
  /** The developer's threads, if the run had any. */
  readonly joined?: readonly PreparedThread[]
  readonly judge: (call: Call) => Judgement | Promise<Judgement>
  /** Reviews the changes of a call; undefined when their list was deleted. Absent: no list is known. */
  readonly review?: (changed: ToolChanged) => ChangeReview | undefined | Promise<ChangeReview | undefined>
}

export type ToolChanged = Extract<ExternalEvent, { type: 'tool.changed' }>

/** Plans stay those of the run, because files have changed since; only the policy is evaluated. @throws whatever the judge throws. */
export async function rejudge({ entries, limits, rules = [], joined = [], judge, review }: RejudgeInput): Promise<Rejudgement> {
  const calls: Rejudged[] = []
  const changes: RejudgedChanges[] = []
  const before: ExternalEvent[] = []
  const after: ExternalEvent[] = []
  for (const [at, entry] of entries.entries()) {
    const event = externalOf(entry)
    if (event === undefined) continue
    before.push(event)
    after.push(event.type === 'tool.changed' ? await reviewed(event, at + 1) : await again(event, at + 1))
  }

  async function reviewed(event: ToolChanged, number: number): Promise<ToolChanged> {
    const now = await review?.(event)
    changes.push(rejudgedChanges(number, event, now))
    return now === undefined ? event : { ...event, review: { ...event.review, ...summaryOfChanges(now) } }
  }

  /** Judges the calls again that the event brings into the run, if it brings any. */
  async function again(event: ExternalEvent, number: number): Promise<ExternalEvent> {
    const proposals: Proposal[] = []
    for (const { call, judgement } of broughtBy(event) ?? []) {
      const now = await judge(call)
      const { labels: _, ...before } = judgement
      calls.push(rejudgedCall(number, { call, judgement }, now))
      proposals.push({ call, judgement: { ...before, ...summaryOf(now), ...(now.labels ? { labels: now.labels } : {}) } })
    }
    if (event.type === 'run.start' && event.continues) return { ...event, continues: { ...event.continues, proposals } }
    return event.type === 'model.done' || event.type === 'judged' ? { ...event, proposals } : event
  }

  function happenings(externals: readonly ExternalEvent[]): string[] {
    const happened: string[] = []
    const threadOf = (name: string) => joined.find((each) => each.name === name)?.thread
    const running = createProgram({ threads: [...program(limits), ...rules], threadOf })
    for (const event of externals) {
      running.take(event, (selected) => void happened.push(briefly(selected)))
    }
    return happened
  }

  const missing = missingThreads(entries, joined)
  const judged = changes.length === 0 ? { calls } : { calls, changes }
  if (missing.length > 0) return { ...judged, missing }
  return { ...judged, ...parted(happenings(before), happenings(after)) }
}

/** Describes an event without its wording: only what happens, and to which call, counts as a divergence. */
function briefly(event: RunEvent): string {
  if (event.type === 'finish') return `finish (${event.ending.code})`
  return 'id' in event ? `${event.type} ${event.id}` : event.type
}

function parted(before: readonly string[], after: readonly string[]): Pick<Rejudgement, 'divergence'> {
  const at = before.findIndex((happening, at) => happening !== after[at])
  if (at === -1 && before.length === after.length) return {}
  const place = at === -1 ? before.length : at
  return { divergence: { before: before[place] ?? 'nothing more', after: after[place] ?? 'nothing more' } }
}

function summaryOf({ verdict, risk, rule, reason }: Judgement): JudgementSummary {
  return { verdict, risk, rule, reason }
}

function rejudgedCall(event: number, { call, judgement }: Proposal, now: Judgement): Rejudged {
  const [before, after] = [summaryOf(judgement), summaryOf(now)]
  return { event, id: call.id, tool: call.name, summary: judgement.summary, before, after, changed: before.verdict !== after.verdict }
}

function summaryOfChanges({ verdict, rule, reason }: ChangeReview): ChangeVerdict {
  return { verdict, rule, reason }
}

function rejudgedChanges(event: number, { id, call, review }: ToolChanged, now: ChangeReview | undefined): RejudgedChanges {
  const what = { event, id, tool: call.name, summary: review.summary, before: summaryOfChanges(review) }
  return now === undefined
    ? { ...what, changed: false }
    : { ...what, after: summaryOfChanges(now), changed: review.verdict !== now.verdict }
}
