/** Stores the access tokens of a home: names, scopes and limits in plain text, and of each secret only its SHA-256. */

import type { Clock } from '../runtime/port.ts'
import type { Store } from './store.ts'

/** The limits that the operator set for one token; an absent field means that the channel's own setting applies. */
export type TokenLimits = {
  readonly tools?: readonly string[]
  readonly autonomy?: string
  readonly memory?: 'own' | 'all'
  readonly folder?: string
}

/** `created` and `revoked` in milliseconds since 1970. */
export type TokenRow = {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly limits: TokenLimits
  readonly created: number
  readonly revoked?: number
}

/** `digest` is the SHA-256 of the secret, in hex. */
export type StoredToken = TokenRow & { readonly digest: string }

export type NewToken = Pick<StoredToken, 'id' | 'name' | 'scopes' | 'limits' | 'digest'>

export type TokenTable = {
  /** @returns false when a token of that name is in force */
  add(token: NewToken): boolean
  /** Returns the token with this id, also a revoked one. */
  get(id: string): StoredToken | undefined
  /** Lists tokens, oldest first; revoked ones too. */
  list(): readonly TokenRow[]
  /** @returns false when no token of that name is in force */
  revoke(name: string): boolean
  /** Replaces the secret of the token of that name; it keeps its id and its conversations. @returns false when there is none in force */
  rotate(name: string, digest: string): boolean
  /** Ends the session of a browser for good; its id is stored until its cookie expires. */
  endSession(id: string, expires: number): void
  hasEnded(sessionId: string): boolean
  /** Records that the conversation belongs to the token. The first owner stays. */
  own(conversationId: string, tokenId: string): void
  /** Returns the id of the token that began the conversation. */
  ownerOf(conversationId: string): string | undefined
}

type TokenRecord = {
  readonly id: string
  readonly name: string
  readonly digest: string
  readonly scopes: string
  readonly limits: string
  readonly created: number
  readonly revoked: number | null
}

const columns = 'id, name, digest, scopes, limits, created, revoked'

export function createTokenTable(store: Store, now: Clock): TokenTable {
  function get(id: string): StoredToken | undefined {
    const row = store.sql<TokenRecord, [string]>(`SELECT ${columns} FROM access_tokens WHERE id = ?`).get(id)
    return row ? tokenOf(row) : undefined
  }

  function changes(sql: string, ...values: (string | number)[]): boolean {
    return store.write(() => store.sql<never, (string | number)[]>(sql).run(...values)).changes === 1
  }

  return {
    add: ({ id, name, scopes, limits, digest }) =>
      changes(
        `INSERT OR IGNORE INTO access_tokens(id, name, digest, scopes, limits, created) VALUES (?, ?, ?, ?, ?, ?)`,
        ...[id, name, digest, JSON.stringify(scopes), JSON.stringify(limits), now()],
      ),
    get,
    list() {
      const rows = store.sql<TokenRecord, []>(`SELECT ${columns} FROM access_tokens ORDER BY created, id`).all()
      return rows.map(tokenOf).map(({ digest: _, ...row }) => row)
    },
    revoke: (name) => changes('UPDATE access_tokens SET revoked = ? WHERE name = ? AND revoked IS NULL', now(), name),
    rotate: (name, digest) => changes('UPDATE access_tokens SET digest = ? WHERE name = ? AND revoked IS NULL', digest, name),
    endSession(id, expires) {
      changes('DELETE FROM ended_sessions WHERE expires < ?', now())
      changes('INSERT OR IGNORE INTO ended_sessions VALUES (?, ?)', id, expires)
    },
    hasEnded: (id) => store.sql<{ id: string }, [string]>('SELECT id FROM ended_sessions WHERE id = ?').get(id) !== null,
    own(conversationId, tokenId) {
      changes('INSERT OR IGNORE INTO token_conversations VALUES (?, ?)', conversationId, tokenId)
    },
    ownerOf(conversationId) {
      const rows = store.sql<{ owner: string }, [string]>('SELECT token_id AS owner FROM token_conversations WHERE conversation_id = ?')
      return rows.get(conversationId)?.owner
    },
  }
}

function tokenOf({ scopes, limits, revoked, ...row }: TokenRecord): StoredToken {
  return { ...row, scopes: JSON.parse(scopes), limits: JSON.parse(limits), ...(revoked === null ? {} : { revoked }) }
}
