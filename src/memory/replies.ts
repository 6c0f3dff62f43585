/** Keeps the answers to requests with an Idempotency-Key for a day: the same request gets the first answer. */

import type { KeyedRequest, ReplyState, StoredReply } from '../http/contract.ts'
import type { Clock } from '../runtime/port.ts'
import { isAlive, thisProcess } from './journal/process-owner.ts'
import type { Store } from './store.ts'

export type ReplyTable = {
  begin(request: KeyedRequest): ReplyState
  finish(request: KeyedRequest, reply: StoredReply): void
  forget(request: KeyedRequest): void
}

type ReplyRow = { digest: string; process: string; status: number | null; type: string | null; body: string | null }

const keptMs = 86_400_000

export function createReplyTable(store: Store, now: Clock): ReplyTable {
  function found({ owner, key }: KeyedRequest): ReplyRow | undefined {
    const rows = store.sql<ReplyRow, [string, string]>('SELECT * FROM replies WHERE owner = ? AND key = ?')
    return rows.get(owner, key) ?? undefined
  }

  return {
    begin: (request) =>
      store.write(() => {
        const at = now()
        store.run('DELETE FROM replies WHERE at < ?', at - keptMs)
        const row = found(request)
        if (row) return stateOf(row, request)
        const { owner, key, digest } = request
        const put = 'INSERT INTO replies(owner, key, digest, process, at) VALUES (?, ?, ?, ?, ?)'
        store.run(put, owner, key, digest, thisProcess(), at)
        return { state: 'new' }
      }),
    finish({ owner, key }, { status, type, body }) {
      const put = 'UPDATE replies SET status = ?, type = ?, body = ? WHERE owner = ? AND key = ?'
      store.write(() => store.run(put, status, type, body, owner, key))
    },
    forget({ owner, key }) {
      store.write(() => store.run('DELETE FROM replies WHERE owner = ? AND key = ?', owner, key))
    },
  }
}

function stateOf({ digest, process, status, type, body }: ReplyRow, request: KeyedRequest): ReplyState {
  if (digest !== request.digest) return { state: 'other' }
  if (status !== null) return { state: 'done', reply: { status, type: type ?? '', body: body ?? '' } }
  if (process === thisProcess()) return { state: 'here' }
  return { state: isAlive(process) ? 'elsewhere' : 'lost' }
}
