/** Keeps what file tools replace or delete in the store of change sets, which is loaded before the first write of a conversation. */

import { once } from '../../kit/once.ts'
import type { Originals } from '../../workspace/contract.ts'
import type { Setup } from '../api.ts'

export type FileOriginals = Originals & {
  /** Loads the store; `keep` needs it. */
  load(): Promise<unknown>
}

type Whose = { readonly conversation: string; run(): string }

export function createFileOriginals(setup: Pick<Setup, 'config' | 'paths' | 'log'>, workspace: string, whose: Whose): FileOriginals {
  const opened = once(async () => {
    const { openChanges } = await import('./open-changes.ts')
    return openChanges(setup, workspace).originals(whose)
  })
  return {
    load: opened.get,
    keep(write) {
      const originals = opened.made()
      if (originals === undefined) throw new Error('the store of changes is not open')
      return originals.keep(write)
    },
    delete: async (paths, by) => (await opened.get()).delete(paths, by),
  }
}
