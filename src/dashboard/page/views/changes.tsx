/** Shows what a call changed as a difference, and takes it back. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, call } from '../net/api.ts'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Diff, Tag } from '../parts/small.tsx'
import type { CallStep, Undone } from '../shapes.ts'
import { attempt } from '../state.ts'

type Shown = {
  /** RUN/CALL. */
  readonly set: string
  readonly changes: NonNullable<CallStep['changes']>
  readonly isUndoable: boolean
  readonly again: () => void
}

export function CallChanges({ set, changes: { fate, state, summary }, isUndoable, again }: Shown) {
  const [isOpen, setOpen] = useState(false)
  const now = state ?? fate
  return (
    <>
      <div class="row small">
        <span>Changes</span>
        <Tag kind={now === 'applied' ? 'good' : 'warn'}>{now}</Tag>
        {summary && <span class="mono">{summary}</span>}
        {state !== undefined && (
          <button type="button" class="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide the difference' : 'Show the difference'}
          </button>
        )}
        {isUndoable && (
          <UndoButton path={`/changes/${set}/undo`} done={again}>
            Undo
          </UndoButton>
        )}
      </div>
      {isOpen && <Difference set={set} />}
    </>
  )
}

function Difference({ set }: { readonly set: string }) {
  const shown = useLoaded(() => call<{ patch: string }>('GET', `/changes/${set}`), set)
  return <Loaded from={shown}>{({ patch }) => <Diff text={patch} />}</Loaded>
}

type Undo = { readonly path: string; readonly done: () => void; readonly children: ComponentChildren }

/** Where others changed something since, it says so and offers to overwrite that. */
export function UndoButton({ path, done, children }: Undo) {
  const [refused, setRefused] = useState<readonly Undone[]>([])
  const undo = (force: boolean) =>
    void attempt(async () => {
      const sets = await undone(path, force)
      setRefused(sets.filter(({ ok }) => !ok))
      done()
    })
  if (refused.length === 0)
    return (
      <button type="button" class="small" onClick={() => undo(false)}>
        {children}
      </button>
    )
  return (
    <span class="card bad" role="alert">
      {refused.map(({ name, message, conflicts = [] }) => (
        <span key={name}>
          Not undone: {message} {conflicts.map(({ path, reason }) => `${path} (${reason})`).join(', ')}{' '}
        </span>
      ))}
      <button type="button" class="small" onClick={() => undo(true)}>
        Undo and overwrite that
      </button>{' '}
      <button type="button" class="small" onClick={() => setRefused([])}>
        Leave it
      </button>
    </span>
  )
}

/** A conflict is an answer too: 409 with the same shape. */
async function undone(path: string, force: boolean): Promise<readonly Undone[]> {
  const answer = await call<Undone | { undone: readonly Undone[] }>('POST', path, { force }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 409 && isUndone(error.answer)) return error.answer
    throw error
  })
  return 'undone' in answer ? answer.undone : [answer]
}

function isUndone(answer: unknown): answer is Undone | { undone: readonly Undone[] } {
  return typeof answer === 'object' && answer !== null && ('undone' in answer || 'ok' in answer)
}
