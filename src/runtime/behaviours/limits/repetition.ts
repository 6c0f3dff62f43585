/** Halts a run whose model repeats itself: the same call gave the same result too often, with no new change in between. */

import type { BThread } from '../../../kernel/thread.ts'
import { canonical } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { Call, Judgement, RunEvent } from '../../event.ts'
import { beginnings } from '../start-events.ts'

type RunningCall = { readonly id: string; readonly call: string; readonly changes: boolean; readonly summary: string }

/** `key` is the digest of a call together with its result; `times` counts since the latest new change. */
type CountedResult = { readonly key: string; readonly times: number }

type Repetition = {
  readonly running: readonly RunningCall[]
  /** In the order of the last occurrence, latest last. */
  readonly known: readonly CountedResult[]
  readonly wants: string | null
  readonly over: boolean
}

/** How many results it remembers; it drops the result that has not occurred for the longest time. */
const mostKnown = 256

/**
 * Two calls are equal if tool and canonical arguments are equal; two results are equal if status, output and error are, or the thread that
 * denied the call or dropped its changes, and its reason. Every call counts, refused calls too. The count restarts after a change: a call
 * of more than low risk (or one that writes) that succeeded with a result which is new in this run. So tests that pass again after each
 * edit are no repetition, but the same two edits in turn are.
 */
export function repetition({ maxSameResults }: { readonly maxSameResults: number }): BThread<Repetition, RunEvent> {
  return {
    name: 'repetition',
    priority: 22,
    init: { running: [], known: [], wants: null, over: false },
    bid: ({ wants, over }) => ({
      wait: [{ type: 'act' }, { type: 'tool.done' }, { type: 'deny' }, { type: 'drop' }],
      block: wants !== null || over ? beginnings : [],
      request: wants === null ? [] : [{ type: 'halt', code: 'limit', message: wants }],
    }),
    next(state, event) {
      if (event.type === 'halt') return { ...state, known: [], wants: null, over: true }
      if (state.over || state.wants !== null) return state
      if (event.type === 'act') return { ...state, running: [...state.running, runningOf(event)] }
      if (event.type !== 'tool.done' && event.type !== 'deny' && event.type !== 'drop') return state
      const ended = state.running.find(({ id }) => id === event.id)
      const rest = { ...state, running: state.running.filter(({ id }) => id !== event.id) }
      if (event.type !== 'tool.done') return count(rest, { ...runningOf(event), changes: false }, refusalOf(event), maxSameResults)
      const { status, output, error } = event.outcome
      const changes = ended?.changes === true && status === 'allowed'
      return ended ? count(rest, { ...ended, changes }, digest([status, output, error ?? '']), maxSameResults) : rest
    },
  }
}

function refusalOf({ type, by, reason }: Extract<RunEvent, { type: 'deny' } | { type: 'drop' }>): string {
  return digest([type === 'deny' ? 'denied' : 'dropped', by, reason.toWellFormed()])
}

function count(state: Repetition, { call, changes, summary }: RunningCall, result: string, most: number): Repetition {
  const key = digest([call, result])
  const before = state.known.find((known) => known.key === key)
  const others = state.known.filter((known) => known !== before)
  const results = changes && before === undefined ? others.map((known) => ({ ...known, times: 0 })) : others
  const times = (before?.times ?? 0) + 1
  const known = [...results, { key, times }].slice(-mostKnown)
  return { ...state, known, wants: times < most ? null : sentence(summary, times) }
}

function sentence(summary: string, times: number): string {
  const shown = summary.length > 200 ? `${summary.slice(0, 199).toWellFormed()}…` : summary
  return `the model repeats itself: the same call gave the same result ${times} times, and nothing new was changed in between (${shown}); if that is wanted, raise limits.max_same_results`
}

function runningOf({ id, call, judgement }: { readonly id: string; readonly call: Call; readonly judgement: Judgement }): RunningCall {
  const changes = judgement.risk !== 'low' || judgement.writes.length > 0
  return { id, call: callKey(call, judgement), changes, summary: judgement.summary }
}

/** The program refuses a call without a canonical form before it runs, so the plan of that refusal serves as its key. */
function callKey({ name, input, malformed }: Call, { plan }: Judgement): string {
  try {
    return digest([name, input, malformed ?? ''])
  } catch {
    return plan
  }
}

function digest(value: readonly unknown[]): string {
  return sha256(canonical(value)).slice(0, 32)
}
