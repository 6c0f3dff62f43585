/** Gives the caller of a command what the command changed in its view of the workspace. */

import { join } from 'node:path'
import type { PrivateView } from '../confinement.ts'
import type { Libc } from '../libc.ts'
import { type ReadChanges, readChanges } from './read-changes.ts'
import type { Transaction } from './transaction-folder.ts'

type Viewing = { readonly transaction: Transaction; readonly workspace: string; readonly libc: Libc }

export function createPrivateView({ transaction, workspace, libc }: Viewing): PrivateView {
  const { id, folder, drop } = transaction
  const state: { read?: Promise<ReadChanges> } = {}
  return {
    id,
    folder,
    async changes() {
      state.read ??= readChanges({ up: join(folder, 'up'), workspace, libc })
      return (await state.read).changes
    },
    drop,
  }
}
