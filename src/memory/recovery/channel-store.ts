/** Stores what a channel leaves for other processes, and for its next start: its trouble. */

import { isAlive } from '../journal/process-owner.ts'
import type { Store } from '../store.ts'

export type ChannelStore = ReturnType<typeof createChannelStore>

/** `out of reach`: it asks its service again and again; `failed`: it ended, and is started again later. */
export type ChannelTrouble = { readonly state: 'out of reach' | 'failed'; readonly why: string; readonly since: number }

type TroubleRow = ChannelTrouble & { readonly channel: string; readonly owner: string }

export function createChannelStore({ sql, write }: Store) {
  const all = () => sql<TroubleRow, []>('SELECT channel, owner, state, why, since FROM channel_troubles ORDER BY channel').all()
  return {
    /** Returns the troubles of the processes that live. */
    troubles: () => all().filter(({ owner }) => isAlive(owner)),
    /** Replaces the trouble of a channel of this process, and removes those of dead processes. */
    setTrouble(channel: string, owner: string, trouble: ChannelTrouble | undefined): void {
      const remove = sql<never, [string, string]>('DELETE FROM channel_troubles WHERE channel = ? AND owner = ?')
      const put = sql<never, [string, string, string, string, number]>('INSERT INTO channel_troubles VALUES (?, ?, ?, ?, ?)')
      write(() => {
        for (const row of all()) if (row.owner === owner ? row.channel === channel : !isAlive(row.owner)) remove.run(row.channel, row.owner)
        if (trouble) put.run(channel, owner, trouble.state, trouble.why, trouble.since)
      })
    },
  }
}
