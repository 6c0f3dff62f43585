/** Keeps private copies of executables by SHA-256, so that exactly the hashed and described bytes run even if the original file changes. */

import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { atEnd, attempt, errorText } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'

/** `stamp` names this state of the file: another inode, size or time is another stamp. */
export type StoredCopy =
  | { readonly ok: true; readonly sha256: string; readonly copy: string; readonly stamp: string }
  | { readonly ok: false; readonly why: string }

export type DescribedProgram = { readonly sha256: string; readonly path: string }

export type ExecutableStore = {
  /** Copies the file as it is now; hashes it again only when its inode, size or times have changed. Never throws. */
  keep(path: string): StoredCopy
  /** Returns the text that any process remembered for these bytes at this path. The path counts because a program may read its own name. */
  recall(program: DescribedProgram): string | undefined
  remember(program: DescribedProgram, text: string): void
}

const MAX_BYTES = 512 * 1024 * 1024
const STALE_MS = 30 * 24 * 3_600_000

/** Creates `folder` when it is first needed. This user alone, and no tool, may have write access to it. */
export function createStore(folder: string, now: () => number): ExecutableStore {
  const known = new Map<string, { readonly stamp: string; readonly stored: StoredCopy }>()
  return {
    keep(path) {
      try {
        const stamp = stampOf(path)
        const before = known.get(path)
        if (before?.stamp === stamp && before.stored.ok && existsSync(before.stored.copy)) return before.stored
        const stored = copyInto({ folder, path, now, stamp })
        known.set(path, { stamp, stored })
        return stored
      } catch (error) {
        return { ok: false, why: `it cannot be read or kept: ${errorText(error)}` }
      }
    },
    recall(program) {
      return attempt(() => readFileSync(join(folder, noteOf(program)), 'utf8'))
    },
    remember(program, text) {
      const draft = join(folder, `.${crypto.randomUUID()}`)
      writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
      renameSync(draft, join(folder, noteOf(program)))
    },
  }
}

function noteOf(program: DescribedProgram): string {
  return `${program.sha256}-${sha256(program.path).slice(0, 16)}.json`
}

/** Includes the change time, because a writer of the file cannot set it back. */
function stampOf(path: string): string {
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [dev, ino, size, mtimeNs, ctimeNs].join(':')
}

type Copying = { readonly folder: string; readonly path: string; readonly now: () => number; readonly stamp: string }

/** Hashes the copy rather than the file, so that no change of the file can happen in between. */
function copyInto({ folder, path, now, stamp }: Copying): StoredCopy {
  const { size } = statSync(path)
  if (size > MAX_BYTES) return { ok: false, why: `it has ${size} bytes; ${MAX_BYTES} are the limit` }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = join(folder, `.${crypto.randomUUID()}`)
  using _end = atEnd(() => rmSync(draft, { force: true }))
  copyFileSync(path, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  chmodSync(draft, 0o500)
  const bytes = hashOf(draft)
  const home = join(folder, bytes)
  const copy = join(home, basename(path))
  const isNew = !existsSync(copy)
  mkdirSync(home, { recursive: true, mode: 0o700 })
  if (isNew) renameSync(draft, copy)
  utimesSync(home, now() / 1_000, now() / 1_000)
  if (isNew) sweep(folder, now)
  return { ok: true, sha256: bytes, copy, stamp }
}

function hashOf(path: string): string {
  const hasher = new Bun.CryptoHasher('sha256')
  const chunk = Buffer.allocUnsafe(1 << 20)
  const file = openSync(path, 'r')
  using _end = atEnd(() => closeSync(file))
  for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) hasher.update(chunk.subarray(0, read))
  return hasher.digest('hex')
}

/** Removes copies that nobody used for a month. */
function sweep(folder: string, now: () => number): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found && now() - found.mtimeMs > STALE_MS) rmSync(path, { recursive: true, force: true })
  }
}
