/** Keeps what every page shows: who is logged in, the status of the home, what waits for an answer. */

import { computed, signal } from '@preact/signals'
import type { Status } from '../../channels/http/answer-shapes.ts'
import { ApiError, call } from './net/api.ts'
import type { Approval, Me } from './shapes.ts'

/** Undefined until the server said who we are; null when nobody is logged in. */
export const me = signal<Me | null | undefined>(undefined)
export const status = signal<Status | undefined>(undefined)
/** Sorted from the oldest: the question that waits longest comes first. */
export const approvals = signal<readonly Approval[]>([])
/** A message for the person, read aloud by screen readers. */
export const notice = signal<{ readonly text: string; readonly bad?: true } | undefined>(undefined)
/** The page that is shown: the part of the address after "#/". */
export const place = signal(location.hash.slice(2))

export const stopped = computed(() => status.value?.estop.stopped === true)

export function may(scope: 'read' | 'chat' | 'approve' | 'admin'): boolean {
  const scopes = me.value?.scopes ?? []
  return scopes.includes(scope) || scopes.includes('admin')
}

/** Asks the server for what every page shows. When it does not answer, the live connection says so, and this is called again. */
export async function refresh(): Promise<void> {
  try {
    const [now, waiting] = await Promise.all([
      call<Status>('GET', '/status'),
      call<{ approvals: readonly Approval[] }>('GET', '/approvals'),
    ])
    status.value = now
    approvals.value = waiting.approvals.toReversed()
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 0)) tell(error)
  }
}

/** Runs an action of the person and tells them when it failed. @returns whether it succeeded */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action()
    return true
  } catch (error) {
    tell(error)
    return false
  }
}

/** Runs an action and says that it was done, or why not. @returns whether it succeeded */
export async function doing(done: string, action: () => Promise<unknown>): Promise<boolean> {
  const succeeded = await attempt(action)
  if (succeeded) notice.value = { text: done }
  return succeeded
}

function tell(error: unknown): void {
  notice.value = { text: textOf(error), bad: true }
}

/** Returns what to tell the person. A session that has ended leads back to the login. */
export function textOf(error: unknown): string {
  if (error instanceof ApiError && error.status === 401) me.value = null
  return error instanceof Error ? error.message : String(error)
}
