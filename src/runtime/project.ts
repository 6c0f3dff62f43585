/** Projects selected events to what a consumer sees: one pure reducer, used live and in replay. */

import { count, grouped } from '../kit/text.ts'
import type { AgentEvent, ContextUse, Ending, FailureCode, Part, RunEvent, Trim } from './event.ts'
import { callIdOf, gateIdOf } from './gate-id.ts'
import { changesOf, dropOutcome } from './outcome.ts'

/** `text` is the text of the latest reply, which becomes the run's result. `iterations`: 0 in a structured run. */
export type Projected = {
  readonly runId: string
  readonly text: string
  readonly iterations: number
  readonly events: readonly AgentEvent[]
}

/** Returns what a selected event adds to the digest of its run: the visible events, and the developers' threads that joined. */
export function digestLines(event: RunEvent, { runId, events }: Projected): string[] {
  const lines = events.map((shown) => digestLine(shown, runId))
  return event.type === 'thread.add' ? [...lines, `${JSON.stringify([event.type, event.name, event.digest])}\n`] : lines
}

/** Counts a gate by its call alone, so that digests from before the gate id named the run stay valid. */
function digestLine(event: AgentEvent, runId: string): string {
  const counted = event.type === 'approval_gate' ? { ...event, gateId: callIdOf(runId, event.gateId) } : event
  return `${JSON.stringify(counted)}\n`
}

/** Returns the use of the window after one more event. */
export function contextAfter(context: ContextUse, event: RunEvent): ContextUse {
  if (event.type === 'model.done') return { ...context, ...event.context }
  return event.type === 'context.trimmed' ? { window: event.window, used: event.after, trimmed: context.trimmed + 1 } : context
}

export function projection(runId: string): Projected {
  return { runId, text: '', iterations: 0, events: [] }
}

/**
 * Returns the next projection. Its `events` are those of this selection, with complete texts only (partial texts are live and not
 * journalled).
 */
export function project(state: Projected, event: RunEvent, blockers = ''): Projected {
  const said = event.type === 'run.start' ? event.continues?.wiggum?.text : event.type === 'model.done' ? textOf(event.parts) : ''
  const text = said || state.text
  const iterations = iterationsAfter(state.iterations, event)
  return { ...state, text, iterations, events: eventsOf({ ...state, text, iterations }, event, blockers) }
}

function iterationsAfter(iterations: number, event: RunEvent): number {
  if (event.type === 'run.start') return event.wiggum ? (event.continues?.wiggum?.iteration ?? 1) : 0
  return event.type === 'retry' ? Math.max(1, iterations) + 1 : iterations
}

function eventsOf({ runId, text, iterations }: Projected, event: RunEvent, blockers: string): AgentEvent[] {
  switch (event.type) {
    case 'run.start':
      return [{ type: 'init', runId, model: event.model }, ...(event.wiggum ? [{ type: 'iteration', count: iterations } as const] : [])]
    case 'model.done':
      return [...event.parts.flatMap(spoken), ...(event.cut ? [cutNotice(event.cut)] : [])]
    case 'model.fail':
      return event.code === 'aborted' ? [] : [{ type: 'error', code: failureCode(event.code), message: event.message, recoverable: false }]
    case 'context.trimmed':
      return [{ type: 'error', code: event.type, message: trimNotice(event), recoverable: true }]
    case 'propose':
      return [{ type: 'tool_use', toolCallId: event.id, toolName: event.call.name, input: event.call.input }]
    case 'gate.open':
      return [gate(runId, event)]
    case 'deny':
      return [{ type: 'tool_result', toolCallId: event.id, status: 'failed', output: `Denied by ${event.by}: ${event.reason}` }]
    case 'tool.done':
      return [toolResult(event)]
    case 'drop':
      return [toolResult({ id: event.id, outcome: dropOutcome(event) })]
    case 'retry':
      return [{ type: 'iteration', count: iterations }]
    case 'halt':
      return [{ type: 'error', code: event.code, message: event.message, recoverable: false }]
    case 'stalled':
      return [{ type: 'error', code: 'stalled', message: `the run cannot go on: ${blockers || 'nothing is enabled'}`, recoverable: false }]
    case 'finish':
      return ended(event.ending, text, iterations)
    default:
      return []
  }
}

/** A budget failure is not the provider's failure, so its code has no `provider.` prefix. */
function failureCode(code: FailureCode): string {
  return code === 'budget' ? code : `provider.${code}`
}

function spoken(part: Part): AgentEvent[] {
  if (part.type === 'text') return part.text ? [{ type: 'text', content: part.text, isPartial: false }] : []
  return part.type === 'thinking' && part.text ? [{ type: 'thinking', content: part.text }] : []
}

function cutNotice(cut: 'length' | 'content_filter'): AgentEvent {
  const why = cut === 'length' ? "the model's output limit" : "the provider's content filter"
  return { type: 'error', code: `cut.${cut}`, message: `the answer was cut by ${why}`, recoverable: true }
}

function trimNotice({ window, before, after, lines, summary, omitted, refused, note }: Trim): string {
  const done = [
    ...(lines.length > 0 ? [`${count(lines.length, 'result')} became one line each`] : []),
    ...(summary
      ? [summary.by === 'model' ? 'the middle of the turn was summarised' : 'the middle of the turn became a list of calls']
      : []),
    ...(omitted > 0 ? [`${count(omitted, 'earlier message')} left out`] : []),
  ]
  const why = refused ? 'the model refused a request for its length' : "the model's window was nearly full"
  const sizes = `about ${grouped(before)} of ${grouped(window)} tokens, now ${grouped(after)}`
  return `${why} (${sizes}): ${done.join(', ')}; everything stays on record${note ? `. ${note}` : ''}`
}

function gate(runId: string, { id, call, changes }: Extract<RunEvent, { type: 'gate.open' }>): AgentEvent {
  const about = changes === undefined ? {} : { changes }
  return { type: 'approval_gate', gateId: gateIdOf(runId, id, changes && 'changes'), toolName: call.name, input: call.input, ...about }
}

function toolResult({ id, outcome }: Pick<Extract<RunEvent, { type: 'tool.done' }>, 'id' | 'outcome'>): AgentEvent {
  const changes = changesOf(outcome.metadata)
  const fate = changes === undefined ? {} : { changes }
  if (outcome.status === 'allowed') return { type: 'tool_result', toolCallId: id, status: 'completed', output: outcome.output, ...fate }
  const output = [outcome.error ?? outcome.status, outcome.output].filter(Boolean).join('\n')
  return { type: 'tool_result', toolCallId: id, status: 'failed', output, ...fate }
}

/** Adds a text to an emergency stop, because no other part of the program can explain it. */
function ended(ending: Ending, text: string, iterations: number): AgentEvent[] {
  const words = `Stopped: ${ending.message}. Nothing more was done; "braidclaw estop --clear" lifts the stop.`
  const notice: AgentEvent[] =
    ending.stop === 'cancelled' && ending.code === 'estop' ? [{ type: 'text', content: words, isPartial: false }] : []
  const result = notice.length > 0 ? words : text
  return [...notice, { type: 'done', stopReason: ending.stop, ...(result ? { result } : {}), ...(iterations > 0 ? { iterations } : {}) }]
}

export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}
