/** Decides which of several processes of a home starts what is due: one holds the lease, and another takes it when that one is gone. */

import { isAlive } from '../journal/process-owner.ts'
import type { Store } from '../store.ts'

export type Lease = {
  /** Takes or renews the lease. @returns whether this process holds it now */
  hold(owner: string, now: number): boolean
  /** Returns the living process that holds it. */
  holder(now: number): string | undefined
  release(owner: string): void
}

/** A process that is stopped but alive loses the lease after this time. */
const leaseMs = 120_000

type Held = { readonly owner: string; readonly until: number }

export function createLease({ sql, write }: Store): Lease {
  const find = sql<Held, []>('SELECT owner, until FROM schedule_lease')

  /** A lease that ends further ahead than any lease can was written before the clock was set back. */
  function isFree({ owner, until }: Held, now: number): boolean {
    return until < now || until > now + leaseMs || !isAlive(owner)
  }

  return {
    hold(owner, now) {
      const known = find.get()
      if (known && known.owner !== owner && !isFree(known, now)) return false
      if (known?.owner === owner && !isFree(known, now) && known.until - now > leaseMs / 2) return true
      return write(() => {
        const held = find.get()
        if (held && held.owner !== owner && !isFree(held, now)) return false
        sql<never, [string, number]>('INSERT OR REPLACE INTO schedule_lease VALUES (1, ?, ?)').run(owner, now + leaseMs)
        return true
      })
    },
    holder(now) {
      const held = find.get()
      return held && !isFree(held, now) ? held.owner : undefined
    },
    release: (owner) => write(() => void sql<never, [string]>('DELETE FROM schedule_lease WHERE owner = ?').run(owner)),
  }
}
