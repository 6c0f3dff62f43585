/** Makes, lists and checks the access tokens of a home. A secret is shown once, when it is made; the store holds its SHA-256. */

import { createId, sha256 } from '../../kit/sha256.ts'
import type { StoredToken, TokenLimits, TokenRow, TokenTable } from '../../memory/access-tokens.ts'
import { FailureError } from '../failure.ts'

/** The rights of a token. `read`: look; `chat`: talk and run turns; `approve`: answer questions; `admin`: all of it, and the stop. */
export const tokenScopes = ['read', 'chat', 'approve', 'admin'] as const
export type TokenScope = (typeof tokenScopes)[number]

/** The sender of a request, as the token identifies it. */
export type TokenHolder = Pick<StoredToken, 'id' | 'name' | 'scopes' | 'limits' | 'digest'>

export type NewToken = { readonly name: string; readonly scopes: readonly TokenScope[]; readonly limits: TokenLimits }

/** 160 random bits. */
const secretBytes = 20
const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/i
const secretPattern = /^bct_([0-9a-z]{13})_[0-9a-z]{32}$/

/** @returns the secret. @throws FailureError when the name is taken or cannot be used */
export function makeToken(table: TokenTable, { name, scopes, limits }: NewToken): string {
  if (!namePattern.test(name))
    throw new FailureError(
      'usage',
      `token name ${JSON.stringify(name)}: use 1 to 64 letters, digits, ".", "_" and "-", a letter or digit first`,
    )
  const id = randomWord(8)
  const secret = secretOf(id)
  if (!table.add({ id, name, scopes: [...new Set(scopes)], limits, digest: sha256(secret) }))
    throw new FailureError(
      'error',
      `a token "${name}" exists; revoke it first (braidclaw token revoke ${name}), or replace its secret: braidclaw token rotate ${name}`,
    )
  return secret
}

/** @returns the new secret; the old one stops working at once. @throws FailureError when there is no such token */
export function rotateToken(table: TokenTable, name: string): string {
  const found = inForce(table, name)
  const secret = secretOf(found.id)
  if (!table.rotate(name, sha256(secret))) throw absent(name)
  return secret
}

/** @throws FailureError when there is no such token */
export function revokeToken(table: TokenTable, name: string): void {
  if (!table.revoke(name)) throw absent(name)
}

/** @returns undefined for a secret that no token in force has; the comparison takes the same time wherever the secrets differ */
export function holderOf(table: Pick<TokenTable, 'get'>, secret: string): TokenHolder | undefined {
  const [, id = ''] = secretPattern.exec(secret) ?? []
  const found = id === '' ? undefined : table.get(id)
  const isRight = sameDigest(sha256(secret), found?.digest ?? noDigest)
  return found && isRight && found.revoked === undefined ? found : undefined
}

/** Compares two SHA-256 in hex in constant time. */
export function sameDigest(one: string, other: string): boolean {
  return crypto.timingSafeEqual(Buffer.from(one, 'hex'), Buffer.from(other, 'hex'))
}

const noDigest = '0'.repeat(64)

function inForce(table: TokenTable, name: string): TokenRow {
  const found = table.list().find((row) => row.name === name && row.revoked === undefined)
  if (!found) throw absent(name)
  return found
}

function absent(name: string): FailureError {
  return new FailureError('error', `no token "${name}" is in force; see: braidclaw token list`)
}

function secretOf(id: string): string {
  return `bct_${id}_${randomWord(secretBytes)}`
}

function randomWord(bytes: number): string {
  return createId('t', crypto.getRandomValues(new Uint8Array(bytes))).slice(2)
}
