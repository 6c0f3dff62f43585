/** Deletes the conversations whose last turn is older than the retention. Each deletion leaves a receipt, and all receipts stay. */

import type { HostRecords } from '../../contract/records-api.ts'
import { FailureError } from '../../failure.ts'
import type { Progress } from './manifest.ts'

export type PruneOptions = {
  readonly conversations: Pick<HostRecords['conversations'], 'list' | 'delete'>
  /** Milliseconds since 1970. */
  readonly before: number
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** `underWay`: conversations that were kept because a run of theirs has not ended. */
export type Pruned = { readonly conversations: number; readonly turns: number; readonly underWay: readonly string[] }

/** Returns the conversations that would be deleted. */
export function prunable({ conversations, before }: Pick<PruneOptions, 'conversations' | 'before'>): readonly string[] {
  const found: string[] = []
  for (let next: number | undefined = Number.MAX_SAFE_INTEGER; next !== undefined; ) {
    const page = conversations.list({ limit: 200, before: next })
    for (const { conversationId, updated } of page.conversations) if (updated < before) found.push(conversationId)
    next = page.next
  }
  return found
}

/** Deletes one conversation after the other; an interruption keeps the rest. */
export async function pruneHome(options: PruneOptions): Promise<Pruned> {
  const { conversations, progress, signal } = options
  const old = prunable(options)
  const done = { conversations: 0, turns: 0 }
  const underWay: string[] = []
  for (const [at, id] of old.entries()) {
    if (signal.aborted) break
    try {
      done.turns += conversations.delete(id, 'home prune').turns
      done.conversations += 1
    } catch (error) {
      if (!(error instanceof FailureError) || error.code !== 'error') throw error
      underWay.push(id)
    }
    progress(at / old.length)
    await Bun.sleep(0)
  }
  return { ...done, underWay }
}
