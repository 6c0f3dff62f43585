/** `verifyProgram`: every run that a hostile world can provoke, explored over the very threads that run in production. */

import { type Exploration, explore, LIVELOCK } from '../../kernel/explore.ts'
import type { Property } from '../../kernel/property.ts'
import type { Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { program } from '../program.ts'
import { resolvedOnce, somebodyOwesAnAnswer } from './progress.ts'
import { recallStep, recallThread } from './recall.ts'
import {
  type Named,
  nothingAfterTheEnd,
  nothingBeginsAfterAStop,
  onlyAfterAYes,
  onlyWhatTheGateLets,
  takingTurns,
  withinLimits,
} from './safety.ts'
import { type Bounds, defaultBounds, type Sampled, type Scene, scenesOf } from './scenes.ts'
import { type Told, tellTrace } from './tell.ts'
import { unlikeItsReplay } from './walks.ts'
import { createWorld, memory, type Seen } from './world.ts'

export type VerifyOptions = {
  /** Beside the program's own threads. */
  readonly rules?: readonly Sampled[]
  readonly bounds?: Partial<Bounds>
  /** Names of threads to leave out: what must then break shows that they are needed. */
  readonly without?: readonly string[]
}

/** `holds` is null where nothing was decided: the search ended before, or `note` says why there is nothing to decide yet. */
export type Finding = { readonly id: string; readonly says: string; readonly holds: boolean | null; readonly note?: string }

export type VerifyReport = {
  /** Every property that can be decided holds, in all states. */
  readonly ok: boolean
  readonly states: number
  readonly transitions: number
  readonly properties: readonly Finding[]
  /** Rules that brought no call that they look at, so that nothing was learned about them. */
  readonly unexercised: readonly string[]
  /** The shortest run that breaks it. */
  readonly counterexample?: { readonly property: string; readonly steps: readonly Told[] }
}

const P9 = 'A replay of the external events selects the same events, in the same order.'
const P6 = 'Wiggum mode ends well only after every check passed since the last edit.'

/** @throws TypeError when threads do not fit together (two of one name), and whatever a thread throws. */
export function verifyProgram({ rules = [], bounds, without = [] }: VerifyOptions = {}): VerifyReport {
  const within = { ...defaultBounds, ...bounds }
  const totals = { states: 0, transitions: 0 }
  const cut: string[] = []
  for (const scene of scenesOf(rules, within)) {
    const threads = [...program(scene.limits).filter(({ name }) => !without.includes(name)), ...rules]
    const found = search(scene, threads, within)
    totals.states += found.states
    totals.transitions += found.transitions
    if (found.outcome === 'violated') return report({ ...totals, rules, broken: found, threads })
    if (found.outcome === 'bounded') cut.push(scene.name)
  }
  return report({ ...totals, rules, cut })
}

type Found = Exploration<RunEvent>
type Broken = { readonly property: string; readonly trace: readonly Selection<RunEvent>[] }

/** Explores one scene; when all else holds, samples replays. */
function search(scene: Scene, threads: readonly AnyThread<RunEvent>[], { maxStates }: Bounds): Found {
  const world = createWorld(scene)
  const environment = (_states: unknown, seen: Seen) => world(seen)
  const properties = propertiesOf(scene).map(({ property }) => recalled(property))
  const history = { init: memory.init, next: byEvent(memory.next) }
  const found = explore<RunEvent, Seen>({ threads: threads.map(recallThread), environment, history, properties, maxStates })
  if (found.outcome === 'violated') return found
  const trace = unlikeItsReplay({ threads, world, walks: 100, steps: 40 })
  return trace === undefined ? found : { ...found, outcome: 'violated', property: P9, trace }
}

function recalled(property: Property<RunEvent>): Property<RunEvent> {
  return { ...property, next: byEvent(property.next) }
}

/** Our monitors look at the event of a selection alone. */
function byEvent<M>(next: (monitor: M, selection: Selection<RunEvent>) => M): (monitor: M, selection: Selection<RunEvent>) => M {
  const step = recallStep<M>((monitor, event) => next(monitor, { event, source: '', advanced: [] }))
  return (monitor, { event }) => step(monitor, event)
}

function propertiesOf({ limits }: Pick<Scene, 'limits'>): Named[] {
  return [
    { id: 'P1', property: onlyWhatTheGateLets },
    { id: 'P2', property: onlyAfterAYes },
    { id: 'P3', property: nothingBeginsAfterAStop },
    { id: 'P4', property: nothingAfterTheEnd },
    { id: 'P5', property: withinLimits(limits) },
    { id: 'P7', property: resolvedOnce },
    { id: 'P8', property: somebodyOwesAnAnswer },
    { id: 'P10', property: takingTurns(limits) },
  ]
}

type Outcome = {
  readonly states: number
  readonly transitions: number
  readonly rules: readonly Sampled[]
  readonly cut?: readonly string[]
  readonly broken?: Broken
  readonly threads?: readonly AnyThread<RunEvent>[]
}

function report({ states, transitions, rules, cut = [], broken, threads = [] }: Outcome): VerifyReport {
  const holds = (says: string) => (broken === undefined ? (cut.length > 0 ? null : true) : broken.property === says ? false : null)
  const named = propertiesOf({ limits: { maxToolRounds: 0, maxParallel: 0 } }).map(({ id, property }) => ({ id, says: property.name }))
  const asked = [...named, { id: 'P9', says: P9 }, { id: 'rest', says: `The program always ${LIVELOCK}.` }]
  const note = cut.length > 0 ? { note: `cut off after too many states (${cut.join(', ')}); raise maxStates` } : {}
  const findings = asked.map(({ id, says }): Finding => ({ id, says, holds: holds(id === 'rest' ? LIVELOCK : says), ...note }))
  const seat: Finding = { id: 'P6', says: P6, holds: null, note: 'not applicable until checks exist; wiggum mode is refused' }
  const properties = [...findings.slice(0, 5), seat, ...findings.slice(5)]
  const steps = broken === undefined ? [] : tellTrace(threads, broken.trace)
  const id = asked.find(({ id, says }) => broken?.property === (id === 'rest' ? LIVELOCK : says))?.id ?? 'rest'
  return {
    ok: findings.every(({ holds }) => holds === true),
    states,
    transitions,
    properties,
    unexercised: rules.filter(({ samples = [] }) => samples.length === 0).map(({ name }) => name),
    ...(broken === undefined ? {} : { counterexample: { property: id, steps } }),
  }
}
