/** Creates and locks the folder with the six FIFOs, and refuses a folder that anybody but its owner could change. */

import { existsSync, lstatSync, mkdirSync, openSync, rmSync, type Stats, statSync, symlinkSync } from 'node:fs'
import { FIFOS } from '../../kit/wire.ts'

type Created = { readonly ok: true } | { readonly ok: false; readonly message: string }

/** Returns the result of `ensureFifos` in the usual shape. */
export async function createFifos(dir: string): Promise<Created> {
  const message = await ensureFifos(dir)
  return message ? { ok: false, message } : { ok: true }
}

/**
 * Creates `dir` (0700) and the missing ones of the six FIFOs in it (0600). Our own existing FIFOs stay: a bridge that outlived its agent
 * has them open. It refuses symlinks, other files, other owners and wider modes, and changes nothing then.
 * @returns a message for people that says what is wrong; undefined when all FIFOs exist. @throws only on I/O errors such as a full disk.
 */
export async function ensureFifos(dir: string): Promise<string | undefined> {
  const paths = FIFOS.map((name) => `${dir}/${name}`)
  for (let failed: string | undefined; ; ) {
    let trouble: string | undefined
    for (const path of [dir, ...paths]) trouble ||= problemWith(path, path === dir)
    if (trouble) return trouble
    const missing = paths.filter((path) => !stat(path))
    if (failed || !missing[0]) return missing[0] && failed
    // Another process may create a FIFO meanwhile, and the command then fails; only the final state counts.
    failed = await make(dir, missing)
  }
}

/** Neither runtime can create a FIFO itself; every Linux has the command. @returns the message to show if a FIFO is still missing */
async function make(dir: string, paths: readonly string[]): Promise<string> {
  const { spawnSync } = await import('node:child_process')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const { error, stderr } = spawnSync('mkfifo', ['-m600', ...paths])
  return `mkfifo: ${error ?? stderr}`
}

/** Does not follow symlinks. */
function stat(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

/** Returns what is wrong with an existing path; undefined when it is missing or valid. */
export function problemWith(path: string, isFolder: boolean): string | undefined {
  const found = stat(path)
  // Compares the file type and the permissions of others within the mode.
  if (!found || (found.uid === process.geteuid?.() && (found.mode & 0o170077) === (isFolder ? 0o040000 : 0o010000))) return undefined
  const mode = found.mode.toString(8)
  return `${path} is not a private ${isFolder ? 'folder' : 'FIFO'} (user ${found.uid}, mode ${mode}); remove it or chmod go= it`
}

/**
 * Locks the folder for one agent, because two agents would read each other's lines. The lock is a symlink to the folder through a file descriptor
 * of its holder: it is dangling once that process has ended, however it ended.
 * @returns the path of the lock, which the caller removes if it continues without the FIFOs; undefined when another process holds it.
 * @throws EEXIST when another process takes it at the same moment
 */
export function claim(dir: string): string | undefined {
  const lock = `${dir}/.server.lock`
  if (existsSync(lock) && statSync(lock).ino === statSync(dir).ino) return undefined
  rmSync(lock, { force: true })
  symlinkSync(`/proc/${process.pid}/fd/${openSync(dir, 'r')}`, lock)
  return lock
}
