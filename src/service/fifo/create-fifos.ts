/** The folder with the six FIFOs: made when missing, refused when anybody but its owner could have a hand in it. */

import { lstatSync, mkdirSync, type Stats } from 'node:fs'
import { FIFOS } from '../../kit/wire.ts'

export type Created = { readonly ok: true } | { readonly ok: false; readonly message: string }

/** The same as `troubleMaking`, in the usual shape. */
export async function createFifos(dir: string): Promise<Created> {
  const message = await troubleMaking(dir)
  return message ? { ok: false, message } : { ok: true }
}

/**
 * Makes `dir` (0700) and in it what is missing of the six FIFOs (0600). FIFOs of ours that are there already stay: a bridge that outlived
 * its agent has them open. Symlinks, other files, other owners and wider modes are refused, and nothing is changed then.
 * @returns what is wrong, for people; nothing when all is there. @throws only on I/O errors such as a full disk.
 */
export async function troubleMaking(dir: string): Promise<string | undefined> {
  const paths = FIFOS.map((name) => `${dir}/${name}`)
  for (let failed: string | undefined; ; ) {
    let trouble: string | undefined
    for (const path of [dir, ...paths]) trouble ||= troubleWith(path, path === dir)
    if (trouble) return trouble
    const missing = paths.filter((path) => !stat(path))
    if (failed || !missing[0]) return missing[0] && failed
    // Somebody else may make one meanwhile, and the command fails then: what counts is what is there afterwards.
    failed = await make(dir, missing)
  }
}

/** Neither runtime can make a FIFO by itself; every Linux has the command. @returns what to say if something is missing still */
async function make(dir: string, paths: readonly string[]): Promise<string> {
  const { spawnSync } = await import('node:child_process')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const { error, stderr } = spawnSync('mkfifo', ['-m600', ...paths])
  return `mkfifo: ${error ?? stderr}`
}

/** Of the thing itself: a symlink is one. */
function stat(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

/** What is wrong with something that is there; undefined when it is missing or fine. */
function troubleWith(path: string, isFolder: boolean): string | undefined {
  const found = stat(path)
  // Of a mode, the kind of the thing and what others may do with it.
  if (!found || (found.uid === process.geteuid?.() && (found.mode & 0o170077) === (isFolder ? 0o040000 : 0o010000))) return undefined
  const mode = found.mode.toString(8)
  return `${path} is no ${isFolder ? 'folder' : 'FIFO'} of ours alone (user ${found.uid}, mode ${mode}); remove it or chmod go= it`
}
