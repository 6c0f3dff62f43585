/** Keeps what every page shows: who is logged in, the status of the home, what waits for an answer. */

import { computed, signal } from '@preact/signals'
import { ApiError, call } from './net/api.ts'
import type { Approval, Me, Status } from './shapes.ts'

/** Undefined until the server said who we are; null when nobody is logged in. */
export const me = signal<Me | null | undefined>(undefined)
export const status = signal<Status | undefined>(undefined)
export const approvals = signal<readonly Approval[]>([])
/** A message for the person, read aloud by screen readers. */
export const notice = signal<{ readonly text: string; readonly bad?: true } | undefined>(undefined)
/** The page that is shown: the part of the address after "#/". */
export const place = signal(location.hash.slice(2))

export const stopped = computed(() => status.value?.estop.set === true)

export function may(scope: 'read' | 'chat' | 'approve' | 'admin'): boolean {
  const scopes = me.value?.scopes ?? []
  return scopes.includes(scope) || scopes.includes('admin')
}

/** Asks the server for what every page shows. */
export async function refresh(): Promise<void> {
  const [nextStatus, waiting] = await Promise.all([
    call<Status>('GET', '/status'),
    call<{ approvals: readonly Approval[] }>('GET', '/approvals'),
  ])
  status.value = nextStatus
  approvals.value = waiting.approvals
}

/** Runs an action of the person and tells them when it failed. @returns whether it succeeded */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action()
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.value = null
    notice.value = { text: error instanceof Error ? error.message : String(error), bad: true }
    return false
  }
}
