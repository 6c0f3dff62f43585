/** Keeps what file tools replace or delete in the store of change sets, which is loaded before the first write of a conversation. */

import { lazy } from '../../kit/lazy.ts'
import type { Policy } from '../../security/policy.ts'
import type { Originals } from '../../workspace/contract.ts'
import type { Judging } from './reviewed-views.ts'

export type FileOriginals = Originals & {
  /** Does the work, with the store loaded, which `keep` needs, while no change set enters the workspace or leaves it. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

type Whose = { readonly conversation: string; run(): string }

export function createFileOriginals(setup: Judging['setup'], policy: Policy, whose: Whose): FileOriginals {
  const opened = lazy(async () => {
    const { openJudgedChanges } = await import('./reviewed-views.ts')
    const store = openJudgedChanges(setup, policy)
    return { store, originals: store.originals(whose) }
  })
  return {
    alone: async (work) => (await opened.get()).store.alone(work),
    keep(write) {
      const made = opened.current()
      if (made === undefined) throw new Error('the store of changes is not open')
      return made.originals.keep(write)
    },
    delete: async (paths, by) => (await opened.get()).originals.delete(paths, by),
  }
}
