import { expect, test } from 'bun:test'
import { createEngine } from '../../kernel/engine.ts'
import { advances, matches } from '../../kernel/select.ts'
import type { AnyThread } from '../../kernel/thread.ts'
import type { Proposal, RunEvent } from '../event.ts'
import { program } from '../program.ts'
import type { Matcher } from './matcher.ts'
import { parseRules, type Rule } from './parse-rules.ts'
import { ruleThread } from './rule-thread.ts'

type Thread = AnyThread<RunEvent>
type AttemptedCall = { proposal: Proposal; succeeds: boolean }
type Wishes = AttemptedCall[][]

/** Random numbers that are the same in every run, so that a failure can be reproduced. */
function createDice(seed: number) {
  const state = { at: seed }
  const roll = (sides: number) => {
    state.at = (state.at * 48_271) % 2_147_483_647
    return state.at % sides
  }
  return {
    roll,
    one: <T>(options: readonly T[]): T => options[roll(options.length)] ?? fail(),
    some: <T>(most: number, make: () => T): T[] => Array.from({ length: roll(most + 1) }, make),
  }
}
type Dice = ReturnType<typeof createDice>
const fail = (): never => {
  throw new Error('nothing to choose from')
}

const tools = ['shell', 'http', 'file_read']
const paths = ['.env', 'a', 'src/a.ts', '../x']
const makeField = ({ one, roll }: Dice) =>
  one<object>([
    { 'input.path': { path: one(['**/.env', 'src/**', '*']) } },
    { 'input.path': { not: { path: one(['src/**', '**']) } } },
    { 'input.path': { regex: one(['env$', '^a', '.']) } },
    { risk: one(['low', ['medium', 'high']]) },
    { input: { schema: { required: ['path'], properties: { path: { minLength: roll(5) } } } } },
  ])
const makeCalls = (dice: Dice) => ({
  tool: dice.one([...tools, '*', ['http', 'shell']]),
  ...(dice.roll(2) ? { when: makeField(dice) } : {}),
})
const makeRule = (dice: Dice, at: number): object => {
  const { tool, ...when } = makeCalls(dice)
  return {
    name: `r${at}`,
    on: { type: 'propose', tool },
    ...when,
    block: dice.one([['act'], ['act'], ['act', 'think'], ['think']]),
    ...(dice.roll(3) === 0 ? { after: makeCalls(dice) } : {}),
    ...(dice.roll(3) === 0 ? { until: makeCalls(dice) } : {}),
    ...(dice.roll(3) === 0 ? { atMost: dice.roll(3) } : {}),
  }
}

/** Rules and calls come from pools, so that each pair is evaluated only once. */
const remembered = ({ matches }: Matcher): Matcher => {
  const known = new WeakMap<object, boolean>()
  return {
    matches: (proposal) => {
      const found = known.get(proposal.call.input) ?? matches(proposal)
      known.set(proposal.call.input, found)
      return found
    },
  }
}
const withMemory = (rule: Rule): Rule => ({
  ...rule,
  target: remembered(rule.target),
  ...(rule.after && { after: remembered(rule.after) }),
  ...(rule.until && { until: remembered(rule.until) }),
})

function makePools(dice: Dice) {
  const text = JSON.stringify(Array.from({ length: 200 }, (_, at) => makeRule(dice, at)))
  const { rules, problems } = parseRules({ text, file: 'random.json', places: { workspace: '/w', home: '/h' } })
  expect(problems).toEqual([])
  const judged = (risk: 'low' | 'medium', verdict: 'allow' | 'deny') =>
    ({ verdict, risk, rule: 't', reason: 't', plan: 'p', summary: 's', writes: [] }) as const
  const proposals = tools.flatMap((name) =>
    paths.flatMap((path) =>
      [judged('low', 'allow'), judged('medium', 'allow'), judged('low', 'deny')].map(
        (judgement): Proposal => ({ call: { id: '', name, input: { path } }, judgement }),
      ),
    ),
  )
  return { threads: rules.map((rule): Thread => ruleThread(withMemory(rule))), proposals }
}

/** Returns what may happen under these rules, by their bids alone. */
function permitted(threads: readonly Thread[], wishes: Wishes): Set<string> {
  const states: unknown[] = threads.map(({ init }) => init)
  const acted = new Set<string>()
  const blocked = (event: RunEvent) => threads.some((thread, at) => matches(thread.bid(states[at]).block, event))
  const happen = (event: RunEvent) => {
    for (const [at, thread] of threads.entries()) if (advances(thread.bid(states[at]), event)) states[at] = thread.next(states[at], event)
  }
  for (const [round, asked] of wishes.entries()) {
    if (blocked({ type: 'think', round })) break
    const running: RunEvent[] = []
    for (const [at, { proposal, succeeds }] of asked.entries()) {
      const id = `${round}.${at}`
      const event = { type: 'act', id, call: { ...proposal.call, id }, judgement: proposal.judgement } as const
      happen({ ...event, type: 'propose' })
      if (proposal.judgement.verdict === 'deny' || blocked(event)) {
        happen({ ...event, type: 'deny', by: 'x', reason: 'x' })
        continue
      }
      acted.add(id)
      happen(event)
      running.push({ type: 'tool.done', id, outcome: { status: succeeds ? 'allowed' : 'failed', output: '' } })
    }
    running.forEach(happen)
  }
  return acted
}

/** Returns the same from the whole program, in a world that cooperates. */
function actedIn(rules: readonly Thread[], wishes: Wishes): Set<string> {
  const engine = createEngine<RunEvent>({ threads: [...program({ maxToolRounds: 9, maxParallel: 2 }), ...rules] })
  const acted = new Set<string>()
  const send = (event: RunEvent): void => {
    engine.send(event)
    for (const { event } of engine.superstep().selected) {
      if (event.type !== 'act') continue
      acted.add(event.id)
      const [round = 0, at = 0] = event.id.split('.').map(Number)
      send({ type: 'tool.done', id: event.id, outcome: { status: wishes[round]?.[at]?.succeeds ? 'allowed' : 'failed', output: '' } })
    }
  }
  send({ type: 'run.start', prompt: 'go', mode: 'structured', at: 0, model: 'm' })
  for (const [round, asked] of wishes.entries()) {
    const proposals = asked.map(({ proposal: { call, judgement } }, at) => ({ call: { ...call, id: `${round}.${at}` }, judgement }))
    send({ type: 'model.done', parts: [], proposals, usage: { inputTokens: 0, outputTokens: 0 }, model: 'm' })
  }
  return acted
}

const makeWishes = (dice: Dice, proposals: readonly Proposal[]): Wishes =>
  Array.from({ length: 3 }, () =>
    Array.from({ length: 1 + dice.roll(2) }, () => ({ proposal: dice.one(proposals), succeeds: dice.roll(4) > 0 })),
  )
const union = (a: readonly Thread[], b: readonly Thread[]) => [...new Set([...a, ...b])]

test('permitted(A ∪ B) ⊆ permitted(A): over 100,000 random rule sets, more rules never permit more', () => {
  const dice = createDice(7)
  const { threads, proposals } = makePools(dice)
  const seen = { permitted: 0, takenAway: 0 }
  for (let turn = 0; turn < 100_000; turn++) {
    const [a, b] = [dice.some(2, () => dice.one(threads)), dice.some(2, () => dice.one(threads))]
    const wishes = makeWishes(dice, proposals)
    const alone = permitted(a, wishes)
    const together = permitted(union(a, b), wishes)
    if (!together.isSubsetOf(alone)) expect({ turn, a, b, wishes, more: [...together.difference(alone)] }).toBeUndefined()
    seen.permitted += alone.size
    seen.takenAway += alone.size - together.size
  }
  expect(seen.permitted).toBeGreaterThan(100_000)
  expect(seen.takenAway).toBeGreaterThan(50_000)
}, 120_000)

test('what the bids permit is what the whole program does', () => {
  const dice = createDice(11)
  const { threads, proposals } = makePools(dice)
  for (let turn = 0; turn < 500; turn++) {
    const rules = [...new Set(dice.some(3, () => dice.one(threads)))]
    const wishes = makeWishes(dice, proposals)
    expect(actedIn(rules, wishes)).toEqual(permitted(rules, wishes))
  }
})
