/** Reviews what a call of a past run changed, as far as the change store still keeps it, by another policy. */

import { isObject } from '../../kit/json.ts'
import type { ChangeReview } from '../../runtime/changes.ts'
import type { Judge } from '../../runtime/port.ts'
import type { Entry } from '../../runtime/replay/external-entry.ts'
import type { ToolChanged } from '../../runtime/replay/rejudge.ts'
import type { Shown, Side } from '../../workspace/changes/contract.ts'
import { createLook, type Look } from '../../workspace/changes/look.ts'
import type { ChangeStore } from '../../workspace/changes/store.ts'
import type { changeJudge } from './reviewed-views.ts'

export type PastReviewOptions = {
  readonly entries: readonly Entry[]
  readonly runId: string
  readonly store: ChangeStore
  readonly judge: Judge
  readonly judgeChanges: ReturnType<typeof changeJudge>
}

/** @returns undefined for changes that are no longer kept */
export function pastReview({ entries, runId, store, judge, judgeChanges }: PastReviewOptions) {
  return async ({ id, call, review: { digest } }: ToolChanged): Promise<ChangeReview | undefined> => {
    const kept = store.list().find(({ about, review }) => about.run === runId && about.call === id && review?.digest === digest)
    const shown = kept && store.show(kept.id)
    if (shown === undefined) return undefined
    using look = pastLook(shown)
    const approval = approvalIn(entries, id)
    const act = { type: 'act', id, call, judgement: await judge(call), ...(approval ? { approval } : {}) } as const
    return await judgeChanges(act).review({ changes: shown.changes, look, upper: shown.workspace })
  }
}

/** Who said yes before the call ran. */
function approvalIn(entries: readonly Entry[], id: string): string | undefined {
  const act = entries.find(({ kind, type, body }) => kind === 'intent' && type === 'act' && isObject(body) && body.id === id)
  const by = isObject(act?.body) ? act.body.approval : undefined
  return typeof by === 'string' ? by : undefined
}

/** What the change set does not name is taken as it is now. */
export function pastLook({ workspace, changes, read }: Pick<Shown, 'workspace' | 'changes' | 'read'>): Look {
  const now = createLook({ workspace, upper: workspace, changes: [] })
  const byPath = new Map(changes.map((change) => [change.path, change]))
  const stateOf = (path: string, side: Side) => byPath.get(path)?.[side]

  function list(path: string, side: Side): readonly string[] | undefined {
    const own = changes.filter((change) => change.path.slice(0, Math.max(0, change.path.lastIndexOf('/'))) === path)
    const names = (there: boolean) =>
      own.flatMap((change) => ((change[side] !== undefined) === there ? [change.path.slice(change.path.lastIndexOf('/') + 1)] : []))
    const gone = new Set(names(false))
    if (byPath.has(path) && stateOf(path, side)?.kind !== 'folder') return undefined
    return [...new Set([...(now.list(path, side) ?? []), ...names(true)])].filter((name) => !gone.has(name))
  }

  return {
    read: (path, side, maxBytes) => (byPath.has(path) ? read(path, side, maxBytes) : now.read(path, side, maxBytes)),
    kind: (path, side) => (byPath.has(path) ? stateOf(path, side)?.kind : now.kind(path, side)),
    mode: (path, side) => (byPath.has(path) ? stateOf(path, side)?.mode : now.mode(path, side)),
    link: (path, side) => (byPath.has(path) ? stateOf(path, side)?.target : now.link(path, side)),
    list,
    [Symbol.dispose]: () => now[Symbol.dispose](),
  }
}
