/** Reads from the journal of a run what it tells a trainer: what the model read, thought, did and got back, and what the checks said. */

import { isObject } from '../../kit/json.ts'
import { progressAfter } from '../behaviours/wiggum/progress.ts'
import type { Call, ExternalEvent, FrozenCheck, Progress, Usage } from '../event.ts'
import { dropText, outcomeText } from '../outcome.ts'
import { consequenceIn, externalOf, type ReplayEntry } from './external-entry.ts'
import type { RunStart } from './journal-reader.ts'

/** `result` is absent when the run ended before the call did. */
export type RecordedCall = Call & { result?: string }

/** `at` is in milliseconds since 1970. `usage` is absent when a developer's thread requested the calls, not the model. */
export type RecordedMessage = { readonly at: number; readonly text: string } & (
  | { readonly role: 'user' }
  | {
      readonly role: 'agent'
      readonly thinking: string
      readonly calls: readonly RecordedCall[]
      readonly model?: string
      readonly usage?: Usage
    }
)

/** The first message is the prompt. `checks` are those that were executed. */
export type RecordedRun = Pick<RunStart, 'version' | 'tools'> & {
  readonly at: number
  readonly messages: readonly RecordedMessage[]
  readonly checks: readonly (Omit<FrozenCheck, 'digest'> & { readonly digest?: string } & {
    readonly iteration: number
    readonly pass: boolean
    readonly exit?: number | undefined
  })[]
  readonly iterations: number
  readonly receipts: readonly string[]
  /** 1 when it ended well because all checks passed, else 0; absent when the model did not reply, or no check was executed. */
  readonly reward?: 0 | 1 | undefined
}

/** Returns what a run did, from its entries after those of the runs that it continues. Undefined without a start. */
export function recordedRun(entries: Iterable<ReplayEntry & { readonly at: number }>): RecordedRun | undefined {
  const messages: RecordedMessage[] = []
  const checks: RecordedRun['checks'][number][] = []
  const receipts: string[] = []
  const calls = new Map<string, RecordedCall>()
  const state: { first?: RunStart; at: number; progress: Progress | null; code?: string } = { at: 0, progress: null }

  function end(id: string, result: string, receipt: unknown): void {
    const call = calls.get(id)
    if (call) call.result = result
    if (typeof receipt === 'string') receipts.push(receipt)
  }

  function external(at: number, event: ExternalEvent): void {
    const { first, progress } = state
    if (event.type === 'run.start') {
      // A run that continues another one adds its note, if it has one.
      const text = first ? event.prompt : (event.continues?.asked ?? event.prompt)
      if (text !== '' || !first) messages.push({ role: 'user', at, text })
      if (!first) Object.assign(state, { first: event, at })
    } else if (event.type === 'model.done' || event.type === 'judged') messages.push(replyIn(at, event, calls))
    else if (event.type === 'tool.done') end(event.id, outcomeText(event.outcome), event.outcome.receipt)
    else if (event.type === 'check.done' && progress?.stage === 'checking' && !event.notRun) {
      const check = progress.limits.checks[progress.passed]
      if (check) checks.push({ ...check, iteration: progress.iteration, pass: event.pass, exit: event.exit })
    }
    state.progress = progressAfter(progress, event)
  }

  for (const entry of entries) {
    const { at, type, body } = entry
    const event = externalOf(entry)
    const known = event ? undefined : consequenceIn(entry)
    const { receipt, evidence } = isObject(body) ? body : {}
    if (event) external(at, event)
    else if (type === 'retry' && typeof evidence === 'string') {
      messages.push({ role: 'user', at, text: evidence })
      state.progress = progressAfter(state.progress, { type, evidence })
    } else if (known?.type === 'deny') end(known.id, `Denied by ${known.by}: ${known.reason}`, receipt)
    else if (known?.type === 'drop') end(known.id, dropText(known), receipt)
    else if (known?.type === 'finish') state.code = known.ending.code
  }
  const { first, at, progress, code } = state
  if (first === undefined) return undefined
  const isChecked = checks.length > 0 && messages.some(({ role }) => role === 'agent')
  const reward = progress?.stage === 'passed' && code === 'answered' ? 1 : 0
  const { version, tools } = first
  return { version, tools, at, messages, checks, iterations: progress?.iteration ?? 1, receipts, reward: isChecked ? reward : undefined }
}

type Reply = Extract<ExternalEvent, { type: 'model.done' | 'judged' }>

function replyIn(at: number, event: Reply, known: Map<string, RecordedCall>): RecordedMessage {
  const said = (type: 'text' | 'thinking') => event.parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('')
  const calls = event.parts.flatMap((part): RecordedCall[] =>
    part.type === 'call' ? [{ id: part.id, name: part.name, input: part.input, malformed: part.malformed }] : [],
  )
  for (const call of calls) known.set(call.id, call)
  const by = event.type === 'model.done' ? { model: event.model, usage: event.usage } : {}
  return { role: 'agent', at, text: said('text'), thinking: said('thinking'), calls, ...by }
}
