/** Provides `verifyProgram`, which explores every run that a hostile world can provoke, over the same threads that run in production. */

import type { Selection } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { JsonObject } from '../../kit/json.ts'
import type { RunEvent } from '../event.ts'
import { program, type RunLimits } from '../program.ts'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { AnyUserThread } from '../threads/thread.ts'
import { describeTrace, type Story, sentence } from './describe-trace.ts'
import {
  attemptAnswer,
  findings,
  P15,
  type PropertyFinding,
  type SearchAttempt,
  somebodyOwesAnAnswer,
  stopsGetThrough,
} from './properties.ts'
import { type Bounds, defaultBounds, type Sampled, scenesOf } from './scenes.ts'
import { type Listeners, search } from './search.ts'
import { dueAnswers, memory, type Sample } from './world.ts'

export type VerifyOptions = {
  /** Threads in addition to the program's own. */
  readonly rules?: readonly Sampled[]
  /** Calls that the hostile model requests in addition to its own and those of rules. */
  readonly samples?: readonly Sample[]
  readonly bounds?: Partial<Bounds>
  /** Names of the program's threads to leave out; what then breaks shows what they are for. */
  readonly without?: readonly string[]
  /** Names of the scenes to explore, default all; what holds in some scenes alone proves nothing about the program. */
  readonly scenes?: readonly string[]
}

/** Records the kinds of events that happened in at least one run. If nothing can happen, every "never" property holds trivially. */
export type Reached = { readonly [what in Happening]: boolean }

/** Each must happen in some run, or the properties say little. */
export const happenings = ['answer', 'call', 'callAfterYes', 'denial', 'changes', 'changesAfterYes', 'drop', 'checks', 'retry'] as const
type Happening = (typeof happenings)[number]

export type VerifyReport = {
  /** Every decidable property holds in all states. */
  readonly ok: boolean
  readonly states: number
  readonly transitions: number
  readonly properties: readonly PropertyFinding[]
  readonly reached: Reached
  /** Rules that never blocked anything; the result says nothing about them. */
  readonly idleRules: readonly string[]
  /** The shortest run that breaks the property. */
  readonly counterexample?: Story & { readonly property: string }
}

/** @throws TypeError when threads conflict (two have one name), and whatever a thread throws. */
export function verifyProgram({ rules = [], samples = [], bounds, without = [], scenes }: VerifyOptions = {}): VerifyReport {
  const within = { ...defaultBounds, ...bounds }
  const tally = createTally()
  const cut: string[] = []
  const assemble = (limits: RunLimits) => program(limits).filter(({ name }) => !without.includes(name))
  for (const scene of scenesOf(rules, within, samples).filter(({ name }) => scenes?.includes(name) ?? true)) {
    const threads = [...assemble(scene.limits), ...rules, ...(scene.threads ?? [])]
    const found = search({ scene, threads, maxStates: within.maxStates, ...tally.listeners })
    tally.add(found)
    if (found.outcome === 'violated') return { ...tally.report(rules), ...refuted(threads, found) }
    if (found.outcome === 'bounded') cut.push(scene.name)
  }
  const blocked = cut.length > 0 || tally.isAnsweredLate() ? undefined : whatIsInTheWay(assemble(roomyLimits), rules)
  if (blocked?.type === 'threads') return { ...tally.report(rules), ...refuted(blocked.threads, blocked) }
  return { ...tally.report(rules), ok: cut.length === 0, properties: findings({ cut, ...blocked }) }
}

/** Limits that leave room for two rounds of calls and an answer. */
const roomyLimits: RunLimits = { maxToolRounds: 2, maxParallel: 1 }

type InTheWay =
  | ({ readonly type: 'threads'; readonly threads: readonly AnyThread<RunEvent>[] } & Broken)
  | { readonly type: 'rules'; readonly unanswered: string }

/**
 * Finds out whether rules or threads prevent a late answer. An operator's rules may forbid a second round; a thread of the program that
 * does so is a mistake.
 */
function whatIsInTheWay(own: readonly AnyThread<RunEvent>[], rules: readonly Sampled[]): InTheWay {
  const others = rules.filter(({ samples }) => samples === undefined)
  const threads = [...own, ...others]
  const attempt = attemptAnswer(threads)
  if (attempt.answered) return { type: 'rules', unanswered: 'your rules let no run come that far' }
  return { type: 'threads', threads, property: P15, ...attempt }
}

type Broken = { readonly property: string; readonly trace: readonly Selection<RunEvent>[]; readonly refused?: SearchAttempt['refused'] }

/** Returns the events that P8 and P14 require the program to accept, so that the report can name who rejects them. */
function owedAfter(trace: Broken['trace']): { readonly [property: string]: readonly RunEvent[] } {
  return {
    [somebodyOwesAnAnswer.name]: dueAnswers(trace.reduce(memory.next, memory.init)),
    [stopsGetThrough.name]: [
      { type: 'cancel', by: 'user' },
      { type: 'estop', reason: 'stopped' },
    ],
  }
}

function refuted(threads: readonly AnyThread<RunEvent>[], { property, trace, refused = [] }: Broken) {
  const owed = owedAfter(trace)[property] ?? refused
  const properties = findings({ broken: property, cut: [] })
  const id = properties.find(({ holds }) => holds === false)?.id ?? property
  return { ok: false, properties, counterexample: { property: id, ...describeTrace(threads, trace, owed) } }
}

function createTally() {
  const totals = { states: 0, transitions: 0 }
  const blockers = new Set<string>()
  const happened = new Set<Happening>()
  const late = { answer: false }
  const listeners: Listeners = {
    onBlock: (thread) => void blockers.add(thread),
    onEvent(event) {
      const what = happeningOf(event)
      if (what !== undefined) happened.add(what)
    },
    onLateAnswer: () => {
      late.answer = true
    },
  }
  return {
    listeners,
    isAnsweredLate: () => late.answer,
    add({ states, transitions }: { readonly states: number; readonly transitions: number }) {
      totals.states += states
      totals.transitions += transitions
    },
    report: (rules: readonly Sampled[]) => ({
      ...totals,
      reached: reachedOf(happened),
      idleRules: rules.map(({ name }) => name).filter((name) => !blockers.has(name)),
    }),
  }
}

function happeningOf(event: RunEvent): Happening | undefined {
  if (event.type === 'finish') return event.ending.code === 'answered' ? 'answer' : undefined
  if (event.type === 'deny') return 'denial'
  if (event.type === 'retry') return 'retry'
  if (event.type === 'check.done') return event.pass ? 'checks' : undefined
  if (event.type === 'act') return event.approval === undefined ? 'call' : 'callAfterYes'
  if (event.type === 'apply') return event.approval === undefined ? 'changes' : 'changesAfterYes'
  return event.type === 'drop' ? 'drop' : undefined
}

function reachedOf(happened: ReadonlySet<Happening>): Reached {
  return Object.fromEntries(happenings.map((what) => [what, happened.has(what)])) as Reached
}

export type VerifyAgentOptions = {
  readonly threads: readonly AnyUserThread[]
  /** Calls that the threads react to: the checker's hostile model requests them, one and two at a time. */
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject; readonly verdict?: Sample['verdict'] }[]
  /** How many rounds of calls to explore, default 2, and after how many states to stop the search of a scene. */
  readonly bounds?: { readonly toolRounds?: number; readonly maxStates?: number }
}

/** `steps`: the shortest run that breaks the property, one sentence per step. */
export type AgentReport = Omit<VerifyReport, 'counterexample' | 'idleRules'> & {
  /** Threads that blocked nothing in any explored run; the result says little about them. */
  readonly idleThreads: readonly string[]
  readonly counterexample?: { readonly property: string; readonly steps: readonly string[]; readonly heldBack: readonly string[] }
}

/**
 * Model-checks the program together with a developer's threads. @throws ThreadFailure when a thread is invalid, or fails in an explored run
 */
export function verifyAgent({ threads, calls = [], bounds = {} }: VerifyAgentOptions): AgentReport {
  const prepared = prepareThreads(threads).map(({ thread }) => thread)
  const { counterexample, idleRules, ...report } = verifyProgram({ rules: prepared, samples: calls, bounds })
  if (counterexample === undefined) return { ...report, idleThreads: idleRules }
  const { property, steps, heldBack } = counterexample
  return { ...report, idleThreads: idleRules, counterexample: { property, steps: steps.map(sentence), heldBack } }
}
