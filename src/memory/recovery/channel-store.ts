/** Stores what a channel leaves for other processes, and for its next start: its trouble, and the answers that are not delivered. */

import { isAlive } from '../journal/process-owner.ts'
import type { Store } from '../store.ts'

export type ChannelStore = ReturnType<typeof createChannelStore>

/** `out of reach`: it asks its service again and again; `failed`: it ended, and is started again later. */
export type ChannelTrouble = {
  readonly channel: string
  readonly state: 'out of reach' | 'failed'
  readonly why: string
  readonly since: number
}

type TroubleRow = ChannelTrouble & { readonly owner: string }

/** An answer that waits, or never will be delivered. `sent`: how many of its pieces are delivered. `at`: milliseconds since 1970. */
type UnsentAnswer = {
  readonly seq: number
  readonly channel: string
  readonly address: string
  readonly text: string
  readonly replyTo: string | null
  readonly at: number
  readonly sent: number
  readonly why: string
  readonly failed: number
}

/** `isQuestion`: only the process that asks can receive what a person answers. */
type NewAnswer = Pick<UnsentAnswer, 'channel' | 'address' | 'text' | 'replyTo'> & {
  conversationId: string
  isQuestion: boolean
  owner: string
}

/** The most answers of a channel that wait, and the most that are remembered as never delivered. */
const [mostWaiting, mostFailed] = [1_000, 100]

const staleQuestion = '[I was restarted while a question of mine to you waited to be sent. The call did not run; ask me again.]'

const answers = 'SELECT seq, channel, address, text, reply_to AS replyTo, at, sent, why, failed FROM outbox'
const latest = 'SELECT seq FROM outbox WHERE channel = ? AND failed = ? ORDER BY seq DESC LIMIT -1 OFFSET ?'

export function createChannelStore({ sql, run: runNow, write }: Store) {
  const all = () => sql<TroubleRow, []>('SELECT channel, owner, state, why, since FROM channel_troubles ORDER BY channel').all()
  const run = (text: string, ...values: (string | number | null)[]) => write(() => runNow(text, ...values))
  return {
    unsent: () => sql<UnsentAnswer, []>(`${answers} ORDER BY seq`).all(),
    /** Keeps an answer; of too many that wait for one channel the oldest fail. @returns its number */
    keep({ channel, address, conversationId, text, replyTo, isQuestion, owner }: NewAnswer): number {
      return write(() => {
        const values = [channel, address, conversationId, text, replyTo, Number(isQuestion), owner, Date.now()]
        const columns = 'channel, address, conversation_id, text, reply_to, is_question, owner, at'
        const kept = run(`INSERT INTO outbox(${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, ...values)
        run(`UPDATE outbox SET failed = 1, text = '', why = 'too many answers wait' WHERE seq IN (${latest})`, channel, 0, mostWaiting)
        run(`DELETE FROM outbox WHERE seq IN (${latest})`, channel, 1, mostFailed)
        return Number(kept.lastInsertRowid)
      })
    },
    oldest: (channel: string, address: string) =>
      sql<UnsentAnswer, [string, string]>(`${answers} WHERE channel = ? AND address = ? AND failed = 0 ORDER BY seq`).get(channel, address),
    /** Notes how far it came. The text of one that failed goes: the conversation has it. */
    setProgress(seq: number, { sent = null, why = '', failed = false }: { sent?: number | null; why?: string; failed?: boolean }): void {
      const text = 'UPDATE outbox SET sent = coalesce(?, sent), why = ?, failed = ?, text = iif(? = 1, ?, text) WHERE seq = ?'
      run(text, sent, why, Number(failed), Number(failed), '', seq)
    },
    forget: (seq: number) => run('DELETE FROM outbox WHERE seq = ?', seq).changes >= 0,
    /** Takes over the answers of dead processes; a question of theirs becomes a sentence that says so. @returns the addresses that wait */
    adopt(channel: string, owner: string): string[] {
      const waiting = () =>
        sql<{ owner: string; address: string }, [string]>(
          'SELECT DISTINCT owner, address FROM outbox WHERE channel = ? AND failed = 0 ORDER BY seq',
        ).all(channel)
      const take = 'UPDATE outbox SET owner = ?, text = iif(is_question = 1, ?, text), is_question = 0 WHERE owner = ? AND channel = ?'
      for (const each of waiting()) if (!isAlive(each.owner)) run(take, owner, staleQuestion, each.owner, channel)
      return waiting().flatMap((each) => (each.owner === owner ? [each.address] : []))
    },
    /** Follows a chat to its new address, with the schedules that report there. */
    moveAddress: (channel: string, from: string, to: string) =>
      write(() => {
        run('UPDATE channel_addresses SET address = ? WHERE channel = ? AND address = ?', to, channel, from)
        run('UPDATE schedules SET recipient = ? WHERE channel = ? AND recipient = ?', to, channel, from)
      }),
    /** Returns the troubles of the processes that live. */
    troubles: (): ChannelTrouble[] => all().flatMap(({ owner, ...trouble }) => (isAlive(owner) ? [trouble] : [])),
    /** Replaces the trouble of a channel of this process, and removes those of dead processes. @returns whether that is news */
    setTrouble(channel: string, owner: string, found?: Pick<ChannelTrouble, 'state' | 'why'>): boolean {
      const before = all().find((row) => row.channel === channel && row.owner === owner)
      if (before?.why === found?.why && (before?.state === found?.state || before?.state === 'failed')) return false
      write(() => {
        for (const row of all()) if (!isAlive(row.owner)) run('DELETE FROM channel_troubles WHERE owner = ?', row.owner)
        const values = [channel, owner, found?.state ?? '', found?.why ?? '', before?.since ?? Date.now()]
        if (found) run('INSERT OR REPLACE INTO channel_troubles VALUES (?, ?, ?, ?, ?)', ...values)
        else run('DELETE FROM channel_troubles WHERE channel = ? AND owner = ?', channel, owner)
      })
      return true
    },
  }
}
