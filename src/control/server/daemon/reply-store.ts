/** Keeps the answers to requests with an Idempotency-Key in the table `replies`; the plane forgets them after a day. */

import type { Begun, ReplyStore, RequestName } from '../../../http/idempotency.ts'
import type { Beside, Command, Row, Store } from '../../contract/store-port.ts'

export type ReplyStoreOptions = {
  readonly store: Pick<Store, 'write' | 'dialect'>
  readonly now: () => number
  /** Names this daemon among those that share the database. */
  readonly daemon: string
}

/** Another daemon on the same database may take so long to answer. */
const answeringMs = 120_000
/** The status of a request that is being answered: `body` then names the daemon. */
const answering = 0

export function createReplyStore({ store, now, daemon }: ReplyStoreOptions): ReplyStore {
  const stateOf = ({ digest, status, body, at }: Row, name: RequestName): Begun => {
    if (digest !== name.digest) return { state: 'other' }
    if (status !== answering) return { state: 'done', reply: { status: Number(status), ...typeAndBody(String(body)) } }
    if (body === daemon) return { state: 'here' }
    // With SQLite there is one daemon at a time, so another one's request has died with it.
    const isLost = store.dialect.engine === 'sqlite' || now() - Number(at) > answeringMs
    return { state: isLost ? 'lost' : 'elsewhere' }
  }

  function* begin({ owner, key, digest }: RequestName): Command<Begun> {
    const values = [owner, key, digest, answering, daemon, now()]
    const made = yield [
      'INSERT INTO replies (owner, key, digest, status, body, at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (owner, key) DO NOTHING RETURNING key',
      values,
    ]
    if (made.length > 0) return { state: 'new' }
    const [row] = yield ['SELECT digest, status, body, at FROM replies WHERE owner = ? AND key = ?', [owner, key]]
    return row ? stateOf(row, { owner, key, digest }) : { state: 'elsewhere' }
  }

  return {
    begin: (name) => store.write(() => begin(name), besideReplies(name)),
    finish: (name, { status, type, body }) =>
      store.write(function* () {
        yield ['UPDATE replies SET status = ?, body = ? WHERE owner = ? AND key = ?', [status, `${type}\n${body}`, name.owner, name.key]]
      }, besideReplies(name)),
    forget: (name) =>
      store.write(function* () {
        yield ['DELETE FROM replies WHERE owner = ? AND key = ? AND status = ?', [name.owner, name.key, answering]]
      }, besideReplies(name)),
  }
}

function besideReplies({ owner, key }: Pick<RequestName, 'owner' | 'key'>): Beside {
  return { kind: 'reply', key: `${owner} ${key}` }
}

function typeAndBody(kept: string): { readonly type: string; readonly body: string } {
  const at = kept.indexOf('\n')
  return { type: kept.slice(0, at), body: kept.slice(at + 1) }
}
