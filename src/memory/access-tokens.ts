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
  /** Replaces the secret; the token keeps its id and its conversations. @returns false when none of that name is in force */
  rotate(name: string, digest: string): boolean
  /** Ends the session of a browser for good. `expires`: of its cookie. */
  endSession(id: string, expires: number): void
  hasEnded(sessionId: string): boolean
  /** Records that the conversation belongs to the token. The first owner stays. */
  own(conversationId: string, tokenId: string): void
  /** Returns the id of the token that began the conversation. */
  ownerOf(conversationId: string): string | undefined
}

type TokenRecord = Omit<StoredToken, 'scopes' | 'limits' | 'revoked'> & { scopes: string; limits: string; revoked: number | null }

export function createTokenTable(store: Store, now: Clock): TokenTable {
  const rows = (rest: string, ...values: string[]) => {
    const found = store.sql<TokenRecord, string[]>(`SELECT * FROM access_tokens ${rest}`)
    return found.all(...values).map(tokenOf)
  }

  const changes = (sql: string, ...values: (string | number)[]) => store.write(() => store.run(sql, ...values)).changes === 1

  return {
    add: ({ id, name, scopes, limits, digest }) =>
      changes(
        'INSERT OR IGNORE INTO access_tokens VALUES (?, ?, ?, ?, ?, ?, NULL)',
        ...[id, name, digest, JSON.stringify(scopes), JSON.stringify(limits), now()],
      ),
    get: (id) => rows('WHERE id = ?', id)[0],
    list: () => rows('ORDER BY created, id').map(({ digest: _, ...row }) => row),
    revoke: (name) => changes('UPDATE access_tokens SET revoked = ? WHERE name = ? AND revoked IS NULL', now(), name),
    rotate: (name, digest) => changes('UPDATE access_tokens SET digest = ? WHERE name = ? AND revoked IS NULL', digest, name),
    endSession(id, expires) {
      changes('DELETE FROM ended_sessions WHERE expires < ?', now())
      changes('INSERT OR IGNORE INTO ended_sessions VALUES (?, ?)', id, expires)
    },
    hasEnded: (id) => store.sql<object, [string]>('SELECT 1 FROM ended_sessions WHERE id = ?').get(id) !== null,
    own: (conversationId, tokenId) => void changes('INSERT OR IGNORE INTO token_conversations VALUES (?, ?)', conversationId, tokenId),
    ownerOf: (id) =>
      store.sql<{ token_id: string }, [string]>('SELECT token_id FROM token_conversations WHERE conversation_id = ?').get(id)?.token_id,
  }
}

function tokenOf({ scopes, limits, revoked, ...row }: TokenRecord): StoredToken {
  return { ...row, scopes: JSON.parse(scopes), limits: JSON.parse(limits), revoked: revoked ?? undefined }
}
