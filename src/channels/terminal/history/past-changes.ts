/** Lists, shows and undoes change sets within a conversation: /changes, /diff and /undo. */

import type { Host } from '../../../host/api.ts'
import { changeSetOf, findKept, latestToUndo } from '../../../host/changes/kept-changes.ts'
import type { Printed } from '../printer.ts'
import type { AskPerson } from '../questions/approval-prompt.ts'
import { coloured } from '../questions/coloured.ts'
import { differenceLines, headingOf, keptLines } from './kept-text.ts'
import { undoChanges } from './undo-changes.ts'

export type PastChanges = {
  readonly command: '/changes' | '/diff' | '/undo'
  /** As findKept takes it; empty: the latest. */
  readonly wanted: string
  readonly host: Host
  readonly ask: AskPerson
  readonly workspace: string
  readonly color: boolean
}

/** @throws FailureError when there is no such change set */
export async function pastChanges({ command, wanted, host, ask, workspace, color }: PastChanges): Promise<Printed> {
  const { store, withReceipt } = await host.changes()
  const sets = store.list()
  if (command === '/changes') {
    const lines = keptLines(sets.slice(0, 20), workspace)
    return lines.length === 0 ? 'no change sets are kept\n' : `${lines.join('\n')}\n`
  }
  if (command === '/undo') {
    const set = wanted === '' ? latestToUndo(sets, workspace) : findKept(sets, wanted)
    const undone = await withReceipt({ tool: 'changes.undo', set }, () =>
      undoChanges({ set, ask, done: 'undone', apply: (force) => store.undo(set.id, { force }) }),
    )
    return `${undone.ok ? undone.line : undone.message}\n`
  }
  const set = findKept(sets, wanted || 'last')
  const shown = store.show(set.id)
  if (!shown) return 'the change set was forgotten meanwhile\n'
  return [`${headingOf(set)}\n`, ...coloured(differenceLines(changeSetOf(shown)), color)]
}
