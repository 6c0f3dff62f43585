/**
 * Model-checks a procedure: explores every way in which its steps can end, over the threads that run it, and names what is wrong with the
 * order: a step that is never reached, a dead end, a step that asks and runs without the approvals before it.
 */

import { explore, type Property } from '../kernel/explore.ts'
import type { Selection } from '../kernel/select.ts'
import { canonical, isObject } from '../kit/json.ts'
import type { Tool } from '../runtime/port.ts'
import type { Condition, EndState, Step } from './sop-file.ts'
import { type SopEvent, sopProgram } from './sop-program.ts'

/** `story`: how the steps ended, in order, in one of the shortest runs that break the property. */
export type SopVerdict = { readonly states: number } & (
  | { readonly outcome: 'holds' | 'bounded' }
  | { readonly outcome: 'broken'; readonly property: string; readonly story: readonly string[] }
  | { readonly outcome: 'unreached'; readonly steps: readonly string[] }
)

/** More steps would take minutes. */
export const mostVerified = 300
const mostStates = 200_000

/** The states that conditions ask about, and which way the conditions on texts went. */
type Past = { readonly [name: string]: EndState | boolean }

/** @param threads the program; tests leave one out */
export function verifySop(
  steps: readonly Step[],
  tools: ReadonlyMap<string, Pick<Tool, 'risk' | 'touches'>>,
  threads = sopProgram(steps),
): SopVerdict {
  const byId = new Map(steps.map((step) => [step.id, step]))
  const remembered = new Set(steps.flatMap(({ when }) => (when && 'step' in when.of && 'state' in when.test ? [when.of.step] : [])))
  const reached = new Set<string>()
  const found = explore<SopEvent, Past>({
    threads,
    history: { init: {}, next: (past, { event }) => remember(past, event, byId, remembered) },
    environment(states, past) {
      const running = steps.filter(({ id }) => phaseIn(states[`step ${id}`]) === 'running')
      const endings = running.flatMap((step) => endingsOf(step, past).map((state) => ({ type: 'settled', id: step.id, state }) as const))
      for (const { id, state } of endings) if (state !== 'skipped') reached.add(id)
      return [...endings, ...(running.length === 0 ? [] : [{ type: 'cancel' } as const])]
    },
    properties: [noDeadEnd, nothingAfterStop(byId), approvalsFirst(steps, tools)],
    maxStates: mostStates,
    maxSelections: 2 * steps.length + 10,
  })
  const { states } = found
  if (found.outcome === 'violated') return { states, outcome: 'broken', property: found.property, story: storyOf(found.trace) }
  const unreached = steps.flatMap(({ id }) => (reached.has(id) ? [] : [id]))
  return unreached.length > 0 && found.outcome === 'holds'
    ? { states, outcome: 'unreached', steps: unreached }
    : { states, outcome: found.outcome }
}

function phaseIn(state: unknown): unknown {
  return isObject(state) ? state.phase : undefined
}

/** Returns how the step can end: a condition on a state is decided by what happened, one on a text can go both ways, always the same. */
function endingsOf({ when }: Step, past: Past): readonly EndState[] {
  if (when === undefined) return ['done', 'failed']
  const known = 'step' in when.of && 'state' in when.test ? (past[when.of.step] === when.test.state) !== when.not : past[keyOf(when)]
  return known === undefined ? ['done', 'failed', 'skipped'] : known ? ['done', 'failed'] : ['skipped']
}

function keyOf(when: Condition): string {
  return `when ${canonical(when)}`
}

function remember(past: Past, event: SopEvent, byId: ReadonlyMap<string, Step>, remembered: ReadonlySet<string>): Past {
  if (event.type !== 'settled') return past
  const when = byId.get(event.id)?.when
  const onText = when && !('state' in when.test) ? { [keyOf(when)]: event.state !== 'skipped' } : {}
  return { ...past, ...onText, ...(remembered.has(event.id) ? { [event.id]: event.state } : {}) }
}

const noDeadEnd: Property<SopEvent, boolean> = {
  name: 'no dead end: a run that has not ended waits for a step',
  init: false,
  next: (isOver, { event }) => isOver || event.type === 'finish',
  atQuiescence: (isOver, { offers }) => !isOver && offers.every(({ type }) => type === 'cancel'),
}

type Stopped = 'no' | 'yes' | 'ran'

function nothingAfterStop(byId: ReadonlyMap<string, Step>): Property<SopEvent, Stopped> {
  const stops = (event: SopEvent) =>
    event.type === 'cancel' || (event.type === 'settled' && event.state === 'failed' && byId.get(event.id)?.onFailure === 'abort')
  return {
    name: 'after a failure that ends the run, or a cancellation, no step begins',
    init: 'no',
    next: (stopped, { event }) => (stopped === 'yes' && event.type === 'step' ? 'ran' : stopped === 'no' && stops(event) ? 'yes' : stopped),
    violated: (stopped) => stopped === 'ran',
  }
}

type Allowed = { readonly by: readonly string[]; readonly bypass: boolean }

/** Tells whether the call of a step does more than read. */
function asks({ args }: Step, tool: Pick<Tool, 'risk' | 'touches'> | undefined): boolean {
  if (tool === undefined || tool.risk !== 'low') return true
  return tool
    .touches(args)
    .some((touch) => (touch.kind === 'path' ? touch.access === 'write' : touch.kind === 'command' || touch.method !== 'GET'))
}

function approvalsFirst(steps: readonly Step[], tools: ReadonlyMap<string, Pick<Tool, 'risk' | 'touches'>>): Property<SopEvent, Allowed> {
  const needed = new Map<string, readonly string[]>()
  const approvals: string[] = []
  for (const step of steps) {
    if (step.kind === 'approval') approvals.push(step.id)
    else if (step.kind === 'tool' && asks(step, tools.get(step.tool))) needed.set(step.id, [...approvals])
  }
  return {
    name: 'approvals before what asks: a step that changes something runs only after a yes to every approval above it',
    init: { by: [], bypass: false },
    next(allowed, { event }) {
      if (event.type !== 'settled') return allowed
      if (approvals.includes(event.id)) return event.state === 'done' ? { ...allowed, by: [...allowed.by, event.id].sort() } : allowed
      const isBypass = event.state !== 'skipped' && (needed.get(event.id) ?? []).some((id) => !allowed.by.includes(id))
      return isBypass ? { ...allowed, bypass: true } : allowed
    },
    violated: ({ bypass }) => bypass,
  }
}

function storyOf(trace: readonly Selection<SopEvent>[]): readonly string[] {
  return trace.flatMap(({ event }) => {
    if (event.type === 'step') return [`${event.id} begins`]
    return event.type === 'settled' ? [`${event.id} ${event.state}`] : [event.type]
  })
}
