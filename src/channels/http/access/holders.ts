/** Knows the tokens in force: those of the table, and the one of the token file. */

import { existsSync, readFileSync, statSync } from 'node:fs'
import { holderOf, sameDigest, type TokenHolder } from '../../../host/access/tokens.ts'
import type { Host, Setup } from '../../../host/api.ts'
import { FailureError } from '../../../host/failure.ts'
import { errorText } from '../../../kit/errors.ts'
import { sha256 } from '../../../kit/sha256.ts'

/** `digest`: the SHA-256 of the secret, in hex. */
export type Held = { readonly holder: TokenHolder; readonly digest: string }

export type Holders = {
  bySecret(secret: string): TokenHolder | undefined
  byId(id: string): Held | undefined
  /** Whether any token is in force. */
  any(): boolean
}

/** The id of the token of the file; no token of the table has it. */
const fileId = 'file'
/** Enough for 128 random bits in base 64. */
const leastLength = 22

/** @throws FailureError when the token file cannot be used */
export function createHolders({ tokens }: Pick<Host, 'tokens'>, log: Setup['log'], path: string | undefined): Holders {
  const file = path === undefined ? () => undefined : watchedFile(path, log)
  return {
    bySecret(secret) {
      const held = file()
      return held && sameDigest(sha256(secret), held.digest) ? held.holder : holderOf(tokens, secret)
    },
    byId(id) {
      if (id === fileId) return file()
      const found = tokens.get(id)
      return found && found.revoked === undefined ? { holder: found, digest: found.digest } : undefined
    },
    any: () => file() !== undefined || tokens.list().some(({ revoked }) => revoked === undefined),
  }
}

/** Reads the file again when it changes; a file that became unusable has no token until it is right again. */
function watchedFile(path: string, log: Setup['log']): () => Held | undefined {
  const state = { stamp: stampOf(path), held: readTokenFile(path) as Held | undefined }
  return () => {
    const stamp = stampOf(path)
    if (stamp === state.stamp) return state.held
    state.stamp = stamp
    try {
      state.held = readTokenFile(path)
      log('info', 'token file read again', { path })
    } catch (error) {
      state.held = undefined
      log('error', 'token file refused', { why: errorText(error) })
    }
    return state.held
  }
}

function stampOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true })
  return found ? `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs} ${found.mode}` : 'none'
}

/** @throws FailureError that says what is wrong with the file */
export function readTokenFile(path: string): Held {
  const wrong = (why: string) => new FailureError('error', `the token file "${path}" ${why}`)
  if (!existsSync(path)) throw wrong('does not exist; write one: (umask 077; head -c 24 /dev/urandom | base64 > FILE)')
  const found = statSync(path)
  if (!found.isFile()) throw wrong('is no file')
  if ((found.mode & 0o077) !== 0) throw wrong('can be read by others; run: chmod 600')
  if (found.size > 4_096) throw wrong('is too long for one token')
  const secret = readFileSync(path, 'utf8').trim()
  if (secret === '') throw wrong('is empty; it must hold one token')
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(secret) || secret.length < leastLength || secret.length > 512)
    throw wrong(`must hold one token of ${leastLength} to 512 visible characters, without spaces and commas`)
  return { holder: { id: fileId, name: 'token file', scopes: ['admin'], limits: {} }, digest: sha256(secret) }
}
