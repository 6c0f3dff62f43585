/** Holds what the commands of a conversation changed in their private views, until the changes are applied, dropped or kept for later. */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { atEnd, errorText } from '../../kit/errors.ts'
import { grouped, quote } from '../../kit/text.ts'
import type { Change, ChangeReview, ChangeSet, Revised, Revision } from '../../runtime/changes.ts'
import type { InternalEvent, ToolOutcome } from '../../runtime/event.ts'
import { applied, isPending, notApplied, notKept } from '../../runtime/outcome.ts'
import type { ActOutcome, ChangePorts, Log } from '../../runtime/port.ts'
import { forgetCaches } from '../../sandbox/transaction/cache-layer.ts'
import { withContent } from '../../security/changes/change-view.ts'
import { type Executed, ranOn } from '../../tools/run-tool.ts'
import type { About, Admit, Applied, HeldChanges } from '../../workspace/changes/contract.ts'
import { createLook, type RecordingLook } from '../../workspace/changes/look.ts'
import { outsideOf } from '../../workspace/changes/set/set-folder.ts'
import type { ChangeStore } from '../../workspace/changes/store.ts'
import { showMoves } from '../../workspace/git/show-moves.ts'
import type { EarlierJudgement } from './admit-changes.ts'

type ActEvent = Extract<InternalEvent, { type: 'act' }>
type View = NonNullable<Executed[typeof ranOn]>

export type ViewsOptions = {
  readonly workspace: string
  readonly store: ChangeStore
  readonly log: Log
  /** Judges the changes of a call; `upper` is the folder with what it wrote. Never throws. */
  readonly review: (
    act: ActEvent,
    set: { readonly changes: readonly Change[]; readonly look: RecordingLook; readonly upper: string },
  ) => Promise<{ readonly review: ChangeReview; readonly judged?: EarlierJudgement }>
  /** Judges them once more, when they are applied. */
  readonly admit: (act: ActEvent, judged: EarlierJudgement | undefined) => Admit
  readonly aboutOf: (act: ActEvent) => About
}

export type CommandViews = ChangePorts & {
  /**
   * Reads and judges what the call changed, as changes of the call that started the command. Never rejects: changes that cannot be read are
   * dropped, and the outcome says so.
   */
  settle(act: ActEvent, ran: Executed, signal: AbortSignal, start?: ActEvent): Promise<ActOutcome>
  /** Returns the changes of a call that wait for a decision. */
  changesOf(callId: string): ChangeSet | undefined
  /** Drops the changes that nobody decided about. */
  close(): void
}

type WaitingChanges = {
  readonly act: ActEvent
  readonly view: View
  readonly changes: readonly Change[]
  readonly look: RecordingLook
  readonly about: About
  /** The store has it as pending, so that another process can show and apply it. */
  readonly inStore: boolean
  readonly judged?: EarlierJudgement | undefined
  /** The part that an approval applies, because the person chose or edited. */
  readonly part?: { readonly changes: readonly Change[]; readonly review: ChangeReview; readonly revision: Revision }
}

export function createCommandViews({ workspace, store, log, review, admit, aboutOf }: ViewsOptions): CommandViews {
  const waiting = new Map<string, WaitingChanges>()

  async function settle(asked: ActEvent, { [ranOn]: view, ...ran }: Executed, signal: AbortSignal, act = asked): Promise<ActOutcome> {
    const { id } = asked
    if (view === undefined) return ran
    try {
      const changes = await view.changes(signal)
      if (changes.length === 0) {
        await view.keepCaches()
        view.drop()
        return { ...ran, metadata: { ...ran.metadata, changes: 'none' } }
      }
      const look = createLook({ workspace, upper: `${view.folder}/up`, changes, outside: outsideOf(view.folder) })
      const about = { ...aboutOf(act), call: aboutOf(asked).call }
      waiting.set(id, { act, view, changes, look, about, inStore: false })
      const { review: found, judged } = await review(act, { changes, look, upper: `${view.folder}/up` })
      // Pipes, sockets and devices never enter the workspace.
      const applicable = changes.filter(({ after }) => after?.kind !== 'other')
      const inStore = found.verdict === 'ask' && (await keep(view, { changes: applicable, review: found, about }))
      waiting.set(id, { act, view, changes: applicable, look, about, inStore, judged })
      const left = changes.length - applicable.length
      const ended = left === 0 ? ran : noted(ran, `[pipes, sockets and devices never enter the workspace: ${grouped(left)} left out]`)
      return { ...(found.verdict === 'ask' && !inStore ? notKept(ended) : ended), changes: found }
    } catch (error) {
      waiting.delete(id)
      view.drop()
      return notApplied(ran, 'failed', errorText(error))
    }
  }

  /** @returns false when it could not be kept: then only this process can apply it */
  async function keep({ id, folder }: View, set: Omit<HeldChanges, 'folder'>): Promise<boolean> {
    try {
      await store.hold(id, { ...set, folder })
      return true
    } catch (error) {
      log('error', 'changes that wait for a decision could not be kept', { why: String(error) })
      return false
    }
  }

  /** Removes a view with everything that was kept of it. */
  function forget({ view, inStore }: WaitingChanges): void {
    const removed = inStore ? store.drop(view.id) : Promise.resolve()
    void removed.then(view.drop, (error: unknown) => log('warn', 'dropped changes were not removed', { why: String(error) }))
  }

  /** A part of a change set can be worse than the whole, so it is judged again. */
  async function revise(id: string, revision: Revision): Promise<Revised> {
    const found = waiting.get(id)
    if (found === undefined) return { ok: false, message: viewGone }
    const upper = `${found.view.folder}/up`
    try {
      const changes = revisedChanges({ upper, changes: found.changes, revision })
      if (typeof changes === 'string') return { ok: false, message: changes }
      using look = createLook({ workspace, upper, changes, outside: outsideOf(found.view.folder) })
      const { review: part } = await review(found.act, { changes, look: withEdits(look, revision), upper })
      if (part.verdict === 'deny') return { ok: false, message: `${part.rule}: ${part.reason}` }
      waiting.set(id, { ...found, part: { changes, review: part, revision } })
      return { ok: true, part: part.digest }
    } catch (error) {
      return { ok: false, message: errorText(error) }
    }
  }

  function take(id: string): WaitingChanges | undefined {
    const found = waiting.get(id)
    waiting.delete(id)
    found?.look[Symbol.dispose]()
    return found
  }

  async function apply(
    { id, review, part }: Parameters<ChangePorts['apply']>[0],
    signal: AbortSignal,
    ran: ToolOutcome,
  ): Promise<ToolOutcome> {
    const found = take(id)
    if (found === undefined) return notApplied(ran, 'failed', viewGone)
    const { act, view, about } = found
    const chosen = part === undefined ? { changes: found.changes, review } : found.part
    if (chosen === undefined || chosen.review.digest !== (part ?? review.digest)) {
      forget(found)
      return notApplied(ran, 'failed', 'the part that was chosen is not there any more')
    }
    if (part !== undefined) forgetCaches(view.folder)
    const problem = 'revision' in chosen ? edit(view, chosen) : undefined
    const done: Applied =
      problem === undefined
        ? await store.apply({
            id: view.id,
            folder: view.folder,
            changes: chosen.changes,
            review: chosen.review,
            about,
            signal,
            admit: admit(act, part === undefined ? found.judged : undefined),
          })
        : { ok: false, conflicts: [], message: problem }
    if (done.ok) {
      void store.prune().catch((error: unknown) => log('warn', 'old change sets were not forgotten', { why: String(error) }))
      return applied(part === undefined ? ran : withPart(ran, chosen.changes), chosen.review)
    }
    if (!done.stuck) forget(found)
    return notApplied(ran, done.denied ? 'denied' : 'failed', done.message)
  }

  /** Changes that wait for a decision stay with the store. */
  function drop(event: Parameters<ChangePorts['drop']>[0]): void {
    const found = take(event.id)
    if (found !== undefined && !(isPending(event) && found.inStore)) forget(found)
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
          content: (change, side, maxBytes) =>
            (change[side]?.size ?? 0) > maxBytes ? undefined : found.look.read(change.path, side, maxBytes),
          // The look stays open until the decision.
          git: showMoves({
            workspace,
            upper: `${found.view.folder}/up`,
            changes: found.changes,
            open: () => ({ ...found.look, [Symbol.dispose]() {} }),
          }),
          revise: (revision) => revise(callId, revision),
        }
      )
    },
    close() {
      for (const id of [...waiting.keys()]) {
        const found = take(id)
        if (found !== undefined) forget(found)
      }
    },
  }
}

function noted(ran: ToolOutcome, note: string): ToolOutcome {
  return { ...ran, output: ran.output === '' ? note : `${ran.output}\n${note}` }
}

function edit({ folder }: View, { changes, revision }: NonNullable<WaitingChanges['part']>): string | undefined {
  try {
    return writeEdits({ upper: `${folder}/up`, changes, revision })
  } catch (error) {
    return errorText(error)
  }
}

/** Shows the person's edits, which are not in the view before they are applied. */
function withEdits(look: RecordingLook, { edited }: Revision): RecordingLook {
  return {
    ...look,
    read: (path, side, maxBytes) =>
      (side === 'after' ? edited?.get(path)?.subarray(0, maxBytes) : undefined) ?? look.read(path, side, maxBytes),
  }
}

const viewGone = 'its private view of the workspace is gone'

/** The model must not believe that all of its changes are there. */
function withPart(ran: ToolOutcome, changes: readonly Change[]): ToolOutcome {
  const paths = changes.slice(0, 50).map(({ path }) => JSON.stringify(path))
  const more = changes.length > paths.length ? ` and ${changes.length - paths.length} more` : ''
  const note = `[The person chose or edited what was applied: only ${paths.join(', ')}${more}, perhaps with other content than the command wrote. Read these files again before you continue.]`
  return noted(ran, note)
}

/** The folder with what the command wrote. */
type Upper = { readonly upper: string; readonly changes: readonly Change[]; readonly revision: Revision }

/** Narrows what a command changed to what the person chose; writes nothing. @returns the changes that are left, or why it is not possible */
function revisedChanges({ upper, changes, revision: { only, edited = new Map() } }: Upper): readonly Change[] | string {
  const known = new Map(changes.map((change) => [change.path, change]))
  const strange = [...only, ...edited.keys()].find((path) => !known.has(path))
  if (strange !== undefined) return `${quote(strange)} is not one of the changes`
  const chosen = new Set(only)
  const left = changes.filter(({ path }) => chosen.has(path))
  for (const change of left) {
    const problem = edited.has(change.path) ? inFile(upper, change, () => undefined) : undefined
    if (problem !== undefined) return problem
  }
  return left.map((change) => withContent(change, edited.get(change.path)))
}

/**
 * Writes the person's own text into the files that were edited; call it right before the changes are applied. @returns why it failed; some
 * files may have the person's text then
 */
function writeEdits({ upper, changes, revision: { edited = new Map() } }: Upper): string | undefined {
  for (const change of changes) {
    const content = edited.get(change.path)
    const problem = content && inFile(upper, change, (fd) => replaceContent(fd, content))
    if (problem !== undefined) return problem
  }
  return undefined
}

/** The file itself is written, which keeps its permissions and everything that the private view noted about it. */
function inFile(upper: string, { path, bytes, after }: Change, use: (fd: number) => void): string | undefined {
  if (after?.kind !== 'file') return `${quote(path)} is not a file`
  const place = Buffer.concat([Buffer.from(`${upper}/`), bytes === undefined ? Buffer.from(path) : Buffer.from(bytes, 'base64')])
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants
  const fd = openSync(place, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
  using _end = atEnd(() => closeSync(fd))
  const stat = fstatSync(fd)
  if (!stat.isFile()) return `${quote(path)} is not a file`
  if (stat.nlink > 1) return `${quote(path)} has a second name, whose content would change too`
  use(fd)
  return undefined
}

function replaceContent(fd: number, content: Uint8Array): void {
  for (let at = 0; at < content.length; ) at += writeSync(fd, content, at, content.length - at, at)
  ftruncateSync(fd, content.length)
}
