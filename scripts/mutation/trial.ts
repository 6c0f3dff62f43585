/** Runs one test file against mutants: first a survey without any, then trials with active mutants, in one process where possible. */

import type { Survey } from './drive.ts'
import { ENDLESS } from './switch.ts'
import { type Place, type Reply, startWorker, type Worker } from './worker.ts'

export type Ending = 'passed' | 'failed' | 'timeout'

export type Reach = {
  readonly file: string
  /** Mutants reached while the file loads: each needs its own process. */
  readonly loading: ReadonlySet<string>
  /** By mutant: the cases that reach it, fastest first, their time, and how often they reach it. */
  readonly by: ReadonlyMap<string, { readonly cases: readonly number[]; readonly ms: number; readonly hits: number }>
  readonly all: { readonly cases: readonly number[]; readonly ms: number }
  readonly times: readonly number[]
}

const PATIENCE_MS = 3_000

/** Throws when the file fails without any mutant, because there is then nothing to compare with. */
export async function reachOf(file: string, place: Place): Promise<Reach> {
  const worker = startWorker({ file, active: [], place })
  try {
    const begun = await worker.ready(60_000)
    const survey = begun.type === 'ran' ? await worker.ask({ type: 'survey' }, 120_000) : begun
    if (survey.type !== 'survey') throw new Error(`${file} fails without any mutant; run: npm test -- ${file}`)
    return reach(file, survey)
  } finally {
    worker.kill()
  }
}

/** Gives each mutant its own process. */
export function alone(reach: Reach): Reach {
  return { ...reach, loading: new Set(reach.by.keys()) }
}

/** Returns the cases that together take half a second. */
function quickOnes({ all, times }: Reach): number[] {
  let left = 500
  return all.cases.filter((index) => {
    left -= times[index] ?? 0
    return left > 0
  })
}

function reach(file: string, { loading, cases, steady }: Survey): Reach {
  const quickest = cases.map((one, index) => ({ ...one, index })).toSorted((a, b) => a.ms - b.ms)
  const ids = new Set([loading, ...cases.map(({ hits }) => hits)].flatMap((counts) => Object.keys(counts)))
  const sum = (some: typeof quickest) => ({ cases: some.map(({ index }) => index), ms: some.reduce((ms, one) => ms + one.ms, 0) })
  const all = sum(quickest)
  const early = new Set(steady ? Object.keys(loading) : ids)
  const by = [...ids].map((id) => {
    const met = early.has(id) ? quickest : quickest.filter(({ hits }) => id in hits)
    return [id, { ...sum(met), hits: met.reduce((hits, one) => hits + (one.hits[id] ?? 0), loading[id] ?? 0) }] as const
  })
  return { file, loading: early, by: new Map(by), all, times: cases.map(({ ms }) => ms) }
}

/** Keeps one process per test file; call `end` before another file of the copy changes. */
export function createTrials(place: Place) {
  const workers = new Map<string, { readonly reach: Reach; readonly worker: Worker }>()
  const workerFor = async (reach: Reach): Promise<Worker> => {
    const known = workers.get(reach.file)
    if (known) return known.worker
    const worker = startWorker({ file: reach.file, active: [], place })
    workers.set(reach.file, { reach, worker })
    await worker.ready(60_000)
    return worker
  }
  const drop = (file: string): void => {
    workers.get(file)?.worker.kill()
    workers.delete(file)
  }
  const dropAll = (): void => {
    for (const file of workers.keys()) drop(file)
  }
  /** Returns the test files that no longer pass without a mutant: a mutant left something behind, and later kills may be false. */
  async function end(): Promise<string[]> {
    const broken: string[] = []
    for (const { reach, worker } of workers.values()) {
      const reply = await worker.ask({ type: 'end', cases: quickOnes(reach) }, 60_000)
      if (!(reply.type === 'ran' && reply.passed)) broken.push(reach.file)
    }
    dropAll()
    return broken
  }
  async function trial(reach: Reach, ids: readonly string[]): Promise<Ending> {
    const { cases, ms, hits } = together(reach, ids)
    const order = { type: 'run', active: ids, cases, limit: hits * 100 + 10_000 } as const
    const patience = ms * 3 + PATIENCE_MS
    if (ids.some((id) => reach.loading.has(id))) return fresh({ file: reach.file, active: ids, place }, order, patience)
    const reply = await (await workerFor(reach)).ask(order, patience)
    if (reply.type !== 'ran') drop(reach.file)
    return endingOf(reply)
  }
  return { trial, end, dropAll }
}

async function fresh(start: Parameters<typeof startWorker>[0], order: Parameters<Worker['ask']>[0], patience: number): Promise<Ending> {
  const worker = startWorker(start)
  try {
    const begun = await worker.ready(patience)
    return endingOf(begun.type === 'ran' ? await worker.ask(order, patience) : begun)
  } finally {
    worker.kill()
  }
}

function endingOf(reply: Reply): Ending {
  if (reply.type === 'late' || (reply.type === 'gone' && reply.code === ENDLESS)) return 'timeout'
  return reply.type === 'ran' && reply.passed ? 'passed' : 'failed'
}

function together({ by, all }: Reach, ids: readonly string[]) {
  const met = ids.flatMap((id) => by.get(id) ?? [])
  const cases = new Set(met.flatMap((one) => one.cases))
  const sum = (key: 'ms' | 'hits'): number => met.reduce((total, one) => total + one[key], 0)
  return { cases: all.cases.filter((index) => cases.has(index)), ms: Math.min(all.ms, sum('ms')), hits: sum('hits') }
}
