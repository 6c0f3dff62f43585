/** `verifyProgram`: every run that a hostile world can provoke, explored over the very threads that run in production. */

import type { Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'
import { program } from '../program.ts'
import { type Finding, findings } from './properties.ts'
import { type Bounds, defaultBounds, type Sampled, scenesOf } from './scenes.ts'
import { search } from './search.ts'
import { type Story, tellTrace } from './tell.ts'

export type VerifyOptions = {
  /** Beside the program's own threads. */
  readonly rules?: readonly Sampled[]
  readonly bounds?: Partial<Bounds>
  /** Names of the program's threads to leave out: what then breaks shows what they are there for. */
  readonly without?: readonly string[]
}

/** What happened in at least one run; where nothing can happen every "never" is true and worth nothing. */
export type Reached = { readonly answer: boolean; readonly call: boolean; readonly callAfterYes: boolean; readonly denial: boolean }

export type VerifyReport = {
  /** Every property that can be decided holds, in all states. */
  readonly ok: boolean
  readonly states: number
  readonly transitions: number
  readonly properties: readonly Finding[]
  readonly reached: Reached
  /** Rules that never blocked anything: of them nothing was learned. */
  readonly idleRules: readonly string[]
  /** The shortest run that breaks the property. */
  readonly counterexample?: Story & { readonly property: string }
}

/** @throws TypeError when threads do not fit together (two of one name), and whatever a thread throws. */
export function verifyProgram({ rules = [], bounds, without = [] }: VerifyOptions = {}): VerifyReport {
  const within = { ...defaultBounds, ...bounds }
  const tally = createTally()
  const cut: string[] = []
  for (const scene of scenesOf(rules, within)) {
    const threads = [...program(scene.limits).filter(({ name }) => !without.includes(name)), ...rules]
    const found = search({ scene, threads, maxStates: within.maxStates, onBlock: tally.onBlock, onEvent: tally.onEvent })
    tally.add(found)
    if (found.outcome === 'violated') return { ...tally.report(rules), ...refuted(threads, found) }
    if (found.outcome === 'bounded') cut.push(scene.name)
  }
  return { ...tally.report(rules), ok: cut.length === 0, properties: findings({ cut }) }
}

type Broken = { readonly property: string; readonly trace: readonly Selection<RunEvent>[] }

function refuted(threads: readonly AnyThread<RunEvent>[], { property, trace }: Broken) {
  const properties = findings({ broken: property, cut: [] })
  const id = properties.find(({ holds }) => holds === false)?.id ?? property
  return { ok: false, properties, counterexample: { property: id, ...tellTrace(threads, trace) } }
}

function createTally() {
  const totals = { states: 0, transitions: 0 }
  const blockers = new Set<string>()
  const happened = { answer: false, call: false, callAfterYes: false, denial: false }
  return {
    onBlock: (thread: string) => void blockers.add(thread),
    onEvent(event: RunEvent) {
      if (event.type === 'finish') happened.answer ||= event.ending.code === 'answered'
      else if (event.type === 'deny') happened.denial = true
      else if (event.type === 'act') happened[event.approval === undefined ? 'call' : 'callAfterYes'] = true
    },
    add({ states, transitions }: { readonly states: number; readonly transitions: number }) {
      totals.states += states
      totals.transitions += transitions
    },
    report: (rules: readonly Sampled[]) => ({
      ...totals,
      reached: { ...happened },
      idleRules: rules.map(({ name }) => name).filter((name) => !blockers.has(name)),
    }),
  }
}
