/** Reads what lets callers in: the tokens in force, what a token permits, and the files of the certificate. */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { type ChannelProfile, channelProfileOf } from '../../host/access/channel-profile.ts'
import { holderOf, sameDigest, type TokenHolder } from '../../host/access/tokens.ts'
import type { Host, Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { openSession } from '../../http/callers.ts'
import { errorText } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import { autonomyLevels } from '../../security/settings.ts'
import { httpPeople } from './settings.ts'

export type Holders = {
  bySecret(secret: string): TokenHolder | undefined
  byId(id: string): TokenHolder | undefined
  byCookie(cookie: string): TokenHolder | undefined
  /** Ends the session of the cookie, also for later processes; a cookie that is not in force changes nothing. */
  logOut(cookie: string): void
  /** Tells whether any token is in force. */
  any(): boolean
}

/** Identifies the token of the file; no token of the table has this id. */
const fileId = 'file'
/** Enough for 128 random bits in base 64. */
const leastLength = 22

/** Knows the tokens in force: those of the table, and the one of the token file. @throws FailureError when the token file cannot be used */
export function createHolders({ tokens }: Pick<Host, 'tokens'>, log: Setup['log'], path: string | undefined): Holders {
  const file = path === undefined ? () => undefined : watchedFile(path, log)
  const sessionOf = (cookie: string) => {
    const session = openSession(cookie, (id) => byId(id)?.digest, Date.now())
    return session && !tokens.hasEnded(session.nonce) ? session : undefined
  }

  function byId(id: string): TokenHolder | undefined {
    if (id === fileId) return file()
    const found = tokens.get(id)
    return found && found.revoked === undefined ? found : undefined
  }

  return {
    bySecret(secret) {
      const held = file()
      return held && sameDigest(sha256(secret), held.digest) ? held : holderOf(tokens, secret)
    },
    byId,
    byCookie(cookie) {
      const session = sessionOf(cookie)
      return session && byId(session.id)
    },
    logOut(cookie) {
      const session = sessionOf(cookie)
      if (session) tokens.endSession(session.nonce, session.expires)
    },
    any: () => file() !== undefined || tokens.list().some(({ revoked }) => revoked === undefined),
  }
}

/** Reads the file again when it changes; a file that became unusable has no token until it is right again. */
function watchedFile(path: string, log: Setup['log']): () => TokenHolder | undefined {
  const state = { stamp: stampOf(path), held: readTokenFile(path) as TokenHolder | undefined }
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
export function readTokenFile(path: string): TokenHolder {
  const wrong = (why: string) => new FailureError('error', `the token file "${path}" ${why}`)
  if (!existsSync(path)) throw wrong('does not exist; write one: (umask 077; head -c 24 /dev/urandom | base64 > FILE)')
  const found = statSync(path)
  if (!found.isFile()) throw wrong('is not a file')
  if ((found.mode & 0o077) !== 0) throw wrong('can be read by others; run: chmod 600')
  if (found.size > 4_096) throw wrong('is too long for one token')
  const secret = readFileSync(path, 'utf8').trim()
  if (secret === '') throw wrong('is empty; it must hold one token')
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(secret) || secret.length < leastLength || secret.length > 512)
    throw wrong(`must hold one token of ${leastLength} to 512 visible characters, without spaces and commas`)
  return { id: fileId, name: 'token file', scopes: ['admin'], limits: {}, digest: sha256(secret) }
}

/** The sender of a request, with what the token permits. */
export type Caller = TokenHolder & { readonly access: ChannelProfile }

/** Returns the owner whose conversations the caller may see; undefined: all. */
export function ownerOf({ id, access }: Caller): string | undefined {
  return access.memory === 'own' ? id : undefined
}

/** Returns the name of the caller in records. */
export function signatureOf({ name }: Caller): string {
  return `token ${name}`
}

type Level = (typeof autonomyLevels)[number]

/**
 * Resolves what a token permits: the limits of the channel, then those of the token; neither widens what the operator's settings say. A token
 * with the scope admin is the operator's own; every other one is a chat unless [channels.http] or the token itself says more. A
 * level or list that [channels.http] names limits all tokens.
 */
export function accessOf(config: Pick<Config, 'channels'>, { id, scopes, limits }: TokenHolder): ChannelProfile {
  const settings = config.channels.http ?? {}
  const isOperator = scopes.includes('admin') || settings.profile === 'operator'
  const profile = isOperator ? 'operator' : 'chat'
  const channel = channelProfileOf({ channels: { http: { ...settings, profile } } }, { name: 'http', people: httpPeople })
  const isNamed = (key: string) => settings[key] !== undefined
  const tools = limits.tools && isNamed('toolsAllow') ? limits.tools.filter((tool) => channel.tools?.includes(tool)) : limits.tools
  const level = limits.autonomy === undefined ? undefined : levelOf(limits.autonomy)
  return {
    ...channel,
    token: id,
    ...(tools ? { tools } : {}),
    ...(level === undefined ? {} : { level: isNamed('autonomy') && channel.level ? lower(level, channel.level) : level }),
    ...(limits.memory ? { memory: limits.memory } : {}),
    ...(limits.folder === undefined ? {} : { folder: limits.folder }),
  }
}

function levelOf(word: string): Level {
  return autonomyLevels.find((level) => level === word) ?? 'readonly'
}

function lower(one: Level, other: Level): Level {
  return autonomyLevels.indexOf(one) <= autonomyLevels.indexOf(other) ? one : other
}

type TlsFiles = { readonly cert: string; readonly key: string }
type TlsSettings = { readonly tlsCert?: string; readonly tlsKey?: string }

/**
 * Reads the certificate and the key. @throws FailureError when only one of the two files is named, one cannot be read, or they do not belong
 * together
 */
export function tlsOf({ tlsCert, tlsKey }: TlsSettings): TlsFiles | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw new FailureError('error', 'channels.http: tls_cert and tls_key belong together; name both files, or none')
  const files = { cert: readPem('tls_cert', tlsCert), key: readPem('tls_key', tlsKey) }
  const certificate = parsed('tls_cert', tlsCert, () => new X509Certificate(files.cert))
  const key = parsed('tls_key', tlsKey, () => createPrivateKey(files.key))
  if (!certificate.checkPrivateKey(key))
    throw new FailureError(
      'error',
      `channels.http.tls_key: "${tlsKey}" is not the key of the certificate "${tlsCert}"; name the files of one pair`,
    )
  return files
}

/** Returns until when the certificate is valid, in milliseconds since 1970. */
export function certificateEnd({ cert }: TlsFiles): number {
  return Date.parse(new X509Certificate(cert).validTo)
}

function readPem(key: string, path: string): string {
  try {
    const text = readFileSync(path, 'utf8')
    if (text.includes('-----BEGIN ')) return text
  } catch (error) {
    throw new FailureError('error', `channels.http.${key}: "${path}" cannot be read: ${errorText(error)}`)
  }
  throw new FailureError('error', `channels.http.${key}: "${path}" is not a PEM file`)
}

function parsed<T>(key: string, path: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new FailureError('error', `channels.http.${key}: "${path}" cannot be used: ${errorText(error)}`)
  }
}
