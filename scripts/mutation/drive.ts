/** Runs cases of one test file inside a test process, with the active mutants that the parent names, until the parent ends it. */

import type { Case, Cases } from './cases.ts'
import type { Counts, Switch } from './switch.ts'

export type Order =
  | { readonly type: 'survey' }
  | { readonly type: 'run'; readonly active: readonly string[]; readonly cases: readonly number[]; readonly limit: number }
  | { readonly type: 'end'; readonly cases: readonly number[] }

/** The behaviour of the unchanged program: mutants reached while loading, and in each case; `steady` when a second run passed too. */
export type Survey = {
  readonly type: 'survey'
  readonly loading: Counts
  readonly cases: readonly { readonly ms: number; readonly hits: Counts }[]
  readonly steady: boolean
}

export type Answer = Survey | { readonly type: 'ran'; readonly passed: boolean; readonly trouble?: string }

type Inside = { readonly load: () => Promise<unknown>; readonly at: Switch; readonly shelf: Cases }

/** Resolves at the end. Rejects, and so ends the process, when the file cannot be loaded. */
export async function drive({ load, at, shelf }: Inside, wire: { send(answer: Answer): void; listen(to: (order: Order) => void): void }) {
  await load()
  const loading = at.take(false)
  const obey = async (order: Order): Promise<Answer> => {
    if (order.type === 'survey') return survey(shelf.cases, at, loading)
    return order.type === 'run' ? run(order, { at, cases: shelf.cases }) : finish(order.cases, shelf, at)
  }
  await new Promise<void>((done) => {
    wire.listen(async (order) => {
      wire.send(await obey(order))
      if (order.type === 'end') done()
    })
    wire.send({ type: 'ran', passed: true })
  })
}

type Ran = Extract<Answer, { type: 'ran' }>

async function run({ active, cases, limit }: Extract<Order, { type: 'run' }>, on: { at: Switch; cases: readonly Case[] }): Promise<Ran> {
  on.at.activate(active, limit)
  const ran = await attempt(cases.flatMap((index) => on.cases[index] ?? []))
  on.at.activate([], 0)
  return ran
}

async function attempt(cases: readonly Case[]): Promise<Ran> {
  try {
    for (const one of cases) await one.run()
    return { type: 'ran', passed: true }
  } catch (error) {
    return { type: 'ran', passed: false, trouble: String(error) }
  }
}

async function survey(cases: readonly Case[], at: Switch, loading: Counts): Promise<Survey> {
  const found: { ms: number; hits: Counts }[] = []
  for (const one of cases) {
    at.take(true)
    const start = performance.now()
    await one.run()
    found.push({ ms: performance.now() - start, hits: at.take(false) })
  }
  return { type: 'survey', loading, cases: found, steady: (await attempt(cases)).passed }
}

/** Repeats some cases without a mutant, which shows whether a mutant left something behind. */
async function finish(indices: readonly number[], { cases, finish }: Cases, at: Switch): Promise<Ran> {
  const ran = await run({ type: 'run', active: [], cases: indices, limit: 0 }, { at, cases })
  await finish()
  return ran
}
