/** Keeps the key with which an agent signs its manifests: Ed25519, made once, in a file that only its owner can read. */

import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, attempt, hasCode } from '../../kit/errors.ts'
import { writeKeyOnce } from '../../receipts/key.ts'

export type AgentKey = {
  /** 32 bytes as hex: what the agent reports, and an operator pins. */
  readonly publicKey: string
  sign(bytes: Uint8Array): string
}

export function keyFile(folder: string): string {
  return join(folder, 'manifest-key.pem')
}

/** Makes the folder and the key when there is none. @throws Error that says what is wrong with the file */
export function openAgentKey(folder: string): AgentKey {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = keyFile(folder)
  return keyOf(readKeyFile(path) ?? createKeyFile(path), path)
}

function readKeyFile(path: string): string | undefined {
  const file = openExisting(path)
  if (file === undefined) return undefined
  using _end = atEnd(() => closeSync(file))
  const stat = fstatSync(file)
  if (!stat.isFile()) throw new Error(`the signing key "${path}" is not a regular file; remove it`)
  if (stat.mode & 0o077) throw new Error(`the signing key "${path}" can be read by others; run: chmod 600 "${path}"`)
  return readFileSync(file, 'latin1')
}

function openExisting(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    if (hasCode(error, 'ELOOP')) throw new Error(`the signing key "${path}" is a link; put the key itself there`)
    throw error
  }
}

function createKeyFile(path: string): string {
  writeKeyOnce(path, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  return readKeyFile(path) ?? ''
}

function keyOf(pem: string, path: string): AgentKey {
  const key = attempt(() => createPrivateKey(pem))
  if (key?.asymmetricKeyType !== 'ed25519') throw new Error(`"${path}" holds no Ed25519 key; restore it, or remove it for a new one`)
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return { publicKey: Buffer.from(x, 'base64url').toString('hex'), sign: (bytes) => sign(null, bytes, key).toString('hex') }
}

/** Lists the points of small order, without their sign: for each of these keys, one signature can fit every text. */
const weakKeys: readonly string[] = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  ...['ec', 'ed', 'ee'].map((first) => `${first}${'ff'.repeat(30)}7f`),
]

function isWeak(key: Buffer): boolean {
  const unsigned = Buffer.from(key)
  unsigned[31] = (unsigned[31] ?? 0) & 0x7f
  return weakKeys.includes(unsigned.toString('hex'))
}

/** Never throws: returns false for a text that is not a key or not a signature. */
export function isSignedBy(publicKey: string, bytes: Uint8Array, signature: string): boolean {
  try {
    const point = Buffer.from(publicKey, 'hex')
    if (isWeak(point)) return false
    const x = point.toString('base64url')
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    return verify(null, bytes, key, Buffer.from(signature, 'hex'))
  } catch {
    return false
  }
}
