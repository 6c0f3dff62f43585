/**
 * Chooses which tests run against which mutants, and in which order, until each mutant is killed or has survived all tests that reach it.
 */

import type { Mutant } from './instrument.ts'
import type { Ending, Reach } from './trial.ts'

export type Fate = 'killed' | 'timeout' | 'survived' | 'no coverage'

type Hunt = {
  readonly mutants: readonly Mutant[]
  readonly reaches: readonly Reach[]
  readonly trial: (reach: Reach, ids: readonly string[]) => Promise<Ending>
}

const MOST_AT_ONCE = 64

/**
 * In each round every live mutant meets the next test file that reaches it: first the one named like its own file, then the fastest. Where
 * few mutants die, many are active at once and a failure is bisected to single mutants: only a mutant that fails a test alone counts as
 * killed. A mutant that another one hides in such a group survives, so the score is too low rather than too high.
 */
export async function hunt({ mutants, reaches, trial }: Hunt): Promise<Map<string, Fate>> {
  const queues = new Map(mutants.map((mutant) => [mutant.id, queueOf(mutant, reaches)]))
  const fates = new Map<string, Fate>(mutants.map(({ id }) => [id, queues.get(id)?.length === 0 ? 'no coverage' : 'survived']))
  const last = Math.max(0, ...[...queues.values()].map((queue) => queue.length))
  for (let round = 0; round < last; round += 1) {
    for (const reach of reaches) {
      const met = mutants.filter(({ id }) => fates.get(id) === 'survived' && queues.get(id)?.[round] === reach).map(({ id }) => id)
      const attempt = (ids: readonly string[]) => trial(reach, ids)
      const parts = [met.filter((id) => !reach.loading.has(id)), met.filter((id) => reach.loading.has(id))]
      const dead: [string, Fate][] = []
      for (const part of parts) dead.push(...(await sift(scattered(part), attempt)))
      for (const [id, ending] of dead) fates.set(id, ending)
    }
  }
  return fates
}

function queueOf(mutant: Mutant, reaches: readonly Reach[]): Reach[] {
  const own = mutant.file.replace(/\.ts$/, '.test.ts')
  const weight = ({ file, by }: Reach): number => (file === own ? 0 : (by.get(mutant.id)?.ms ?? 0))
  return reaches.filter(({ by }) => by.has(mutant.id)).toSorted((a, b) => weight(a) - weight(b))
}

/** Neighbours hide each other most often, so they go to different groups. */
function scattered(ids: readonly string[]): string[] {
  const stride = Math.ceil(Math.sqrt(ids.length))
  return ids
    .map((id, index) => ({ id, at: index % stride }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ id }) => id)
}

type Try = (ids: readonly string[]) => Promise<Ending>

async function sift(ids: readonly string[], attempt: Try): Promise<Map<string, 'killed' | 'timeout'>> {
  const dead = new Map<string, 'killed' | 'timeout'>()
  let size = 1
  for (let from = 0; from < ids.length; ) {
    const group = ids.slice(from, from + size)
    from += group.length
    const found = await halve(group, attempt)
    for (const [id, ending] of found) dead.set(id, ending)
    size = found.length > 0 ? Math.max(1, size >> 1) : Math.min(MOST_AT_ONCE, size * 2)
  }
  return dead
}

async function halve(ids: readonly string[], attempt: Try): Promise<[string, 'killed' | 'timeout'][]> {
  const ending = await attempt(ids)
  if (ending === 'passed') return []
  const [only] = ids
  if (ids.length === 1 && only !== undefined) return [[only, ending === 'timeout' ? 'timeout' : 'killed']]
  const middle = ids.length >> 1
  return [...(await halve(ids.slice(0, middle), attempt)), ...(await halve(ids.slice(middle), attempt))]
}
