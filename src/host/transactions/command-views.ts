/** Holds what the commands of a conversation changed in their private views, until the changes are applied, dropped or kept for later. */

import type { JsonObject } from '../../kit/json.ts'
import { applied, isPending, notApplied } from '../../runtime/attempt/change-outcome.ts'
import type { Change, ChangeReview } from '../../runtime/changes.ts'
import type { InternalEvent, ToolOutcome } from '../../runtime/event.ts'
import type { ActOutcome, ChangePorts, Log } from '../../runtime/port.ts'
import { type Executed, ranOn } from '../../tools/run-tool.ts'
import type { About } from '../../workspace/changes/contract.ts'
import { createLook, type Look } from '../../workspace/changes/look.ts'
import type { ChangeStore } from '../../workspace/changes/store.ts'
import type { ChangeSet } from '../changes/change-set.ts'

type ActEvent = Extract<InternalEvent, { type: 'act' }>
type View = NonNullable<Executed[typeof ranOn]>

export type ViewsOptions = {
  readonly workspace: string
  readonly store: ChangeStore
  readonly log: Log
  /** Judges the changes of a call. Never throws. */
  readonly review: (act: ActEvent, changes: readonly Change[], look: Look) => Promise<ChangeReview>
  readonly aboutOf: (act: ActEvent) => About
}

export type CommandViews = ChangePorts & {
  /** Reads and judges what the call changed. Never rejects: changes that cannot be read are dropped, and the outcome says so. */
  settle(act: ActEvent, ran: Executed): Promise<ActOutcome>
  /** Returns the changes of a call that wait for a decision. */
  changesOf(callId: string): ChangeSet | undefined
  /** Drops whatever nobody decided. */
  close(): void
}

type Waiting = { readonly view: View; readonly changes: readonly Change[]; readonly look: Look; readonly about: About }

export function createCommandViews({ workspace, store, log, review, aboutOf }: ViewsOptions): CommandViews {
  const waiting = new Map<string, Waiting>()

  async function settle(act: ActEvent, { [ranOn]: view, ...ran }: Executed): Promise<ActOutcome> {
    if (view === undefined) return ran
    try {
      const changes = await view.changes()
      if (changes.length === 0) {
        view.drop()
        return withFate(ran, 'none')
      }
      const look = createLook({ workspace, upper: `${view.folder}/up`, changes })
      waiting.set(act.id, { view, changes, look, about: aboutOf(act) })
      return { ...ran, changes: await review(act, changes, look) }
    } catch (error) {
      waiting.delete(act.id)
      view.drop()
      return notApplied(ran, 'failed', error instanceof Error ? error.message : String(error))
    }
  }

  function take(id: string): Waiting | undefined {
    const found = waiting.get(id)
    waiting.delete(id)
    found?.look[Symbol.dispose]()
    return found
  }

  async function apply({ id, review }: Parameters<ChangePorts['apply']>[0], signal: AbortSignal, ran: ToolOutcome): Promise<ToolOutcome> {
    const found = take(id)
    if (found === undefined) return notApplied(ran, 'failed', 'its private view of the workspace is gone')
    const { view, changes, about } = found
    const done = await store.apply({ id: view.id, folder: view.folder, changes, about, review, signal })
    if (done.ok) {
      void store.prune().catch((error: unknown) => log('warn', 'old change sets were not forgotten', { why: String(error) }))
      return applied(ran, review)
    }
    view.drop()
    return notApplied(ran, 'failed', done.message)
  }

  function drop(event: Parameters<ChangePorts['drop']>[0]): void {
    const found = take(event.id)
    if (found === undefined) return
    const { view, changes, about } = found
    if (!isPending(event)) view.drop()
    else
      void store.hold(view.id, { changes, review: event.review, about, folder: view.folder }).catch((error: unknown) => {
        log('error', 'changes that wait for a decision could not be kept', { why: String(error) })
        view.drop()
      })
  }

  return {
    settle,
    apply,
    drop,
    changesOf(callId) {
      const found = waiting.get(callId)
      return (
        found && {
          stage: 'made',
          changes: found.changes,
          content: ({ path }, side, maxBytes) => found.look.read(path, side, maxBytes),
        }
      )
    },
    close() {
      for (const id of [...waiting.keys()]) take(id)?.view.drop()
    },
  }
}

function withFate(outcome: ToolOutcome, changes: string): ToolOutcome {
  const metadata: JsonObject = { ...outcome.metadata, changes }
  return { ...outcome, metadata }
}
