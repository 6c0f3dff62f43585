/** Validates one journal entry as an external event, or as a consequence that the driver journalled. */

import { isObject } from '../../kit/json.ts'
import type { ExternalEvent, InternalEvent } from '../event.ts'
import type { Shortening } from '../request/turn-messages.ts'

/** An entry as the journal returns it. `body` is the event; for notes it is the data of the note. */
export type ReplayEntry = {
  readonly seq: number
  readonly kind: 'external' | 'intent' | 'note'
  readonly type: string
  readonly body: unknown
}

type Check = (value: unknown) => boolean

const text: Check = (value) => typeof value === 'string'
const count: Check = (value) => typeof value === 'number'
const flag: Check = (value) => typeof value === 'boolean'
const one =
  (...allowed: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && allowed.includes(value)
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const shape = (members: { readonly [name: string]: Check }): Check => {
  const checks = Object.entries(members)
  return (value) => isObject(value) && checks.every(([name, check]) => check(value[name]))
}

const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)

const labels = optional(list(one('reads_private', 'reads_untrusted', 'sends')))
const call = { id: text, name: text, input: isObject }
const judgement = {
  verdict: one('allow', 'ask', 'deny'),
  risk: one('low', 'medium', 'high'),
  rule: text,
  reason: text,
  plan: text,
  summary: text,
  writes: list(text),
  labels,
}
const review = { digest: text, verdict: one('apply', 'ask', 'deny'), rule: text, reason: text, summary: text, count }
const pictures = optional(list(shape({ type: text, sha256: text })))
const outcome = { status: one('allowed', 'denied', 'failed'), output: text, pictures }
const proposals = list(shape({ call: shape(call), judgement: shape(judgement) }))
const checks = list(shape({ name: text, tier: count, digest: text }))
const limits = shape({ checks, maxIterations: count, maxSame: count, until: optional(count) })
const wiggum = optional(limits)
const stage = one('working', 'checking', 'failed')
const same = shape({ key: text, times: count })
const interrupted = shape({
  limits,
  iteration: count,
  stage,
  evidence: text,
  same,
  text: optional(text),
  tokens: optional(count),
  micros: optional(count),
})
const continues = optional(shape({ run: text, asked: text, proposals, wiggum: optional(interrupted) }))
const part: Check = (value) =>
  isObject(value) && (value.type === 'call' ? shape(call)(value) : one('text', 'thinking')(value.type) && text(value.text))

const shortening = {
  lines: list(text),
  readable: flag,
  summary: optional(shape({ from: count, until: count, text, by: one('model', 'runtime') })),
}

function isTrim(value: unknown): boolean {
  return shape({ ...shortening, window: count, before: count, after: count, omitted: count, digest: text })(value)
}

/** Returns undefined when the value is not the body of a trim. */
export function shorteningIn(body: unknown): Shortening | undefined {
  return isShortening(body) ? body : undefined
}

function isShortening(body: unknown): body is Shortening {
  return shape(shortening)(body)
}

/** The fields that the program reads of each event. */
const shapes: { readonly [type in ExternalEvent['type']]: Check } = {
  'run.start': shape({ prompt: text, mode: one('structured', 'wiggum'), at: count, model: text, labels, continues, wiggum, pictures }),
  'model.done': shape({ parts: list(part), proposals, usage: shape({ inputTokens: count, outputTokens: count }), model: text }),
  'model.fail': shape({ code: text, message: text }),
  'context.trimmed': isTrim,
  'tool.done': shape({ id: text, outcome: shape(outcome) }),
  'tool.changed': shape({ id: text, call: shape(call), judgement: shape(judgement), outcome: shape(outcome), review: shape(review) }),
  'approval.decision': shape({ id: text, allow: flag, by: text, plan: text }),
  'check.done': shape({ id: text, pass: flag, evidence: text, tree: optional(text), notRun: optional(flag) }),
  steer: shape({ text }),
  cancel: shape({ by: text }),
  estop: shape({ reason: text }),
  clock: shape({ at: count }),
  'mode.set': shape({ mode: one('structured', 'wiggum'), maxIterations: optional(count) }),
  'thread.add': shape({ name: text, digest: text }),
  judged: shape({ id: text, by: text, parts: list(part), proposals }),
}

const externals = new Map<unknown, Check>(Object.entries(shapes))

/** Returns undefined when the body is not the event that the entry names. */
export function externalOf({ kind, type, body }: ReplayEntry): ExternalEvent | undefined {
  return kind === 'external' && isExternalBody(body) && body.type === type ? body : undefined
}

function isExternalBody(body: unknown): body is ExternalEvent {
  return isObject(body) && externals.get(body.type)?.(body) === true
}

/** The consequences that the driver journals, except those that name a gate. */
export type Consequence = Extract<
  InternalEvent,
  { type: 'act' } | { type: 'apply' } | { type: 'deny' } | { type: 'drop' } | { type: 'retry' } | { type: 'finish' }
>

const proposal = { id: text, call: shape(call), judgement: shape(judgement) }
const why = { by: text, reason: text }

const consequences: { readonly [type in Consequence['type']]: Check } = {
  act: shape(proposal),
  apply: shape({ ...proposal, review: shape(review) }),
  deny: shape({ ...proposal, ...why }),
  drop: shape({ ...proposal, ...why, outcome: shape(outcome), review: shape(review) }),
  retry: shape({ evidence: text }),
  finish: shape({ ending: shape({ stop: one('end_turn', 'cancelled', 'error'), code: text, message: text }) }),
}

/** Returns undefined when the entry is not such a consequence. */
export function consequenceIn({ kind, type, body }: ReplayEntry): Consequence | undefined {
  return kind !== 'external' && isConsequence(body) && body.type === type ? body : undefined
}

function isConsequence(body: unknown): body is Consequence {
  return isObject(body) && Object.entries(consequences).some(([type, fits]) => type === body.type && fits(body))
}
