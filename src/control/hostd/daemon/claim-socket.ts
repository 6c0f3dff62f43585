/** Makes the path of the socket ours: one daemon a path, what a killed one left is removed, and nothing else is ever removed. */

import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode, explainErrno } from '../../../config/text/read-toml-file.ts'
import type { Libc } from '../../../sandbox/libc.ts'
import { unsafeFolder, whyUnsafe } from '../catalogue/read-catalogue.ts'

type ClaimedSocket = { readonly ok: true; release(): void } | { readonly ok: false; readonly message: string }

const LOCK_EXCLUSIVE_NOW = 2 | 4
/** The kernel's limit of a socket address, with its final NUL. */
const longestPath = 107

type Claim = { readonly path: string; readonly uid: number; readonly libc: Libc }

export async function claimSocket(claim: Claim): Promise<ClaimedSocket> {
  const { path } = claim
  if (!path.startsWith('/') || Buffer.byteLength(path) > longestPath)
    return refused(`the socket "${path}" needs an absolute path of at most ${longestPath} bytes; name a shorter one with --socket`)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
    const unsafe = unsafeFolder(path, claim.uid)
    if (unsafe !== undefined) return refused(`the folder of the socket is not safe: ${unsafe}`)
    return await locked(claim)
  } catch (error) {
    return refused(`the socket "${path}" cannot be made: ${explainErrno(errorCode(error))}`)
  }
}

/** The lock file stays: removing it would let two daemons lock two files of the same name. */
async function locked(claim: Claim): Promise<ClaimedSocket> {
  const name = `${claim.path}.lock`
  const lock = openSync(name, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  const unsafe = fstatSync(lock).isFile() ? whyUnsafe(fstatSync(lock), name, claim.uid) : `"${name}" is no regular file`
  const isOurs = unsafe === undefined && claim.libc.flock(lock, LOCK_EXCLUSIVE_NOW) === 0
  const wrong = isOurs
    ? await clearStale(claim)
    : (unsafe ?? `another hostd serves "${claim.path}"; stop it, or name another path with --socket`)
  if (wrong === undefined) return { ok: true, release: () => closeSync(lock) }
  closeSync(lock)
  return refused(wrong)
}

/** Called with the lock, so a socket that is there was left by a killed hostd, or belongs to another program. */
async function clearStale({ path, uid }: Claim): Promise<string | undefined> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return undefined
  if (found.isSymbolicLink()) return `"${path}" is a symbolic link; remove it, or name another path with --socket`
  if (!found.isSocket()) return `"${path}" exists and is no socket; remove it, or name another path with --socket`
  if (found.uid !== uid) return `the socket "${path}" belongs to user ${found.uid}, not to us (${uid}); remove it, or name another path`
  if (await isServed(path)) return `another program serves "${path}"; stop it, or name another path with --socket`
  unlinkSync(path)
}

function refused(message: string): ClaimedSocket {
  return { ok: false, message }
}

/** Any answer but a refusal counts as served: what we cannot judge is not removed. */
async function isServed(path: string): Promise<boolean> {
  try {
    const connection = await Bun.connect({ unix: path, socket: { data: () => undefined } })
    connection.terminate()
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT'))
  }
}
