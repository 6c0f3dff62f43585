/** Copies the workspace for one attempt, and finds afterwards what the attempt changed in its copy. */

import { spawn } from 'node:child_process'
import { type BigIntStats, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../../kit/sha256.ts'
import type { Change, EntryState } from '../../../runtime/changes.ts'
import { FailureError } from '../../failure.ts'

/** What a copy was like before the attempt; names are bytes as latin1, because not every name is UTF-8. */
export type Manifest = ReadonlyMap<string, BigIntStats>

/** A larger workspace is not copied. */
const mostBytes = 2 * 1024 ** 3

/** @throws FailureError `error` when the workspace is too large or cannot be copied */
export async function copyWorkspace(workspace: string, copy: string): Promise<Manifest> {
  const bytes = [...manifestOf(workspace).values()].reduce((sum, { blocks }) => sum + Number(blocks) * 512, 0)
  if (bytes > mostBytes)
    throw new FailureError(
      'error',
      `the workspace has ${Math.ceil(bytes / 1e6)} MB, too much to copy for each attempt; name a smaller folder with -C`,
    )
  const child = spawn('cp', ['-a', '--reflink=auto', '--', `${workspace}/.`, `${copy}/`], { stdio: ['ignore', 'ignore', 'pipe'] })
  const said: string[] = []
  child.stderr.on('data', (piece: Buffer) => said.push(piece.toString()))
  const code = await new Promise((resolve) => child.once('close', resolve).once('error', resolve))
  if (code !== 0) throw new FailureError('error', `the workspace could not be copied for an attempt: ${said.join('').trim() || code}`)
  return manifestOf(copy)
}

function manifestOf(root: string, below = '', found = new Map<string, BigIntStats>()): Map<string, BigIntStats> {
  for (const name of readdirSync(place(root, below), { encoding: 'buffer' })) {
    const raw = below === '' ? name.toString('latin1') : `${below}/${name.toString('latin1')}`
    const stat = lstatSync(place(root, raw), { bigint: true })
    found.set(raw, stat)
    if (stat.isDirectory()) manifestOf(root, raw, found)
  }
  return found
}

export type Copied = {
  readonly workspace: string
  readonly copy: string
  readonly before: Manifest
  /** The new files are moved there; the folder exists and is empty. */
  readonly upper: string
}

/** Call it when nothing writes into the copy any more. The copy lacks the changed files afterwards. */
export function takeChanges({ workspace, copy, before, upper }: Copied): readonly Change[] {
  const now = manifestOf(copy)
  const names = [...new Set([...before.keys(), ...now.keys()])].sort()
  return names.flatMap((raw): Change[] => {
    const [old, fresh] = [before.get(raw), now.get(raw)]
    if (old && fresh && isUntouched(old, fresh)) return []
    const [was, is] = [old && stateOf(workspace, raw, old), fresh && stateOf(copy, raw, fresh)]
    if (JSON.stringify(was) === JSON.stringify(is)) return []
    if (fresh) give({ copy, upper, raw, isFolder: fresh.isDirectory() })
    return [{ ...namesOf(raw), ...(was ? { before: was } : {}), ...(is ? { after: is } : {}) }]
  })
}

/** A folder is touched by what happens in it; its own permissions are compared in any case. */
function isUntouched(old: BigIntStats, fresh: BigIntStats): boolean {
  return !fresh.isDirectory() && old.ino === fresh.ino && old.ctimeNs === fresh.ctimeNs
}

/** The content before comes from the workspace; where somebody changed it meanwhile, applying refuses it. */
function stateOf(root: string, raw: string, stat: BigIntStats): EntryState {
  const mode = Number(stat.mode & 0o7777n)
  if (stat.isDirectory()) return { kind: 'folder', mode }
  if (stat.isSymbolicLink()) return { kind: 'link', mode: 0o777, target: linkAt(root, raw) }
  if (!stat.isFile()) return { kind: 'other', mode }
  const content = contentAt(root, raw)
  return { kind: 'file', mode, size: Number(stat.size), ...(content?.length === Number(stat.size) ? { sha256: sha256(content) } : {}) }
}

function contentAt(root: string, raw: string): Uint8Array | undefined {
  try {
    return lstatSync(place(root, raw)).isFile() ? readFileSync(place(root, raw)) : undefined
  } catch {
    return undefined
  }
}

function linkAt(root: string, raw: string): string {
  try {
    return readlinkSync(place(root, raw))
  } catch {
    return ''
  }
}

function give({ copy, upper, raw, isFolder }: { copy: string; upper: string; raw: string; isFolder: boolean }): void {
  const parts = raw.split('/')
  for (let depth = 1; depth < parts.length; depth++) mkdirSync(place(upper, parts.slice(0, depth).join('/')), { recursive: true })
  if (isFolder) mkdirSync(place(upper, raw), { recursive: true })
  else renameSync(place(copy, raw), place(upper, raw))
}

function namesOf(raw: string): Pick<Change, 'path' | 'bytes'> {
  const bytes = Buffer.from(raw, 'latin1')
  const path = bytes.toString()
  return Buffer.compare(Buffer.from(path), bytes) === 0 ? { path } : { path, bytes: bytes.toString('base64') }
}

function place(root: string, raw: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(raw, 'latin1')])
}

/** The folders of one attempt. */
export function attemptFolders(base: string, number: number) {
  const folder = join(base, String(number))
  return { copy: join(folder, 'workspace'), set: join(folder, 'set'), upper: join(folder, 'set', 'up') }
}
