/** Provides tests with a workspace, a change store, and change sets made by changing a copy of the workspace. */

import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256 } from '../../kit/sha256.ts'
import type { Change, EntryState } from '../../runtime/changes.ts'
import type { About, ToApply } from './contract.ts'
import { type ChangeStore, type ChangeStoreOptions, openChangeStore } from './store.ts'
import { namesOf, type RawName } from './tree/entry.ts'
import { removeTree } from './tree/tree.ts'

export type Fixture = AsyncDisposable & {
  readonly base: string
  readonly root: string
  /** A git directory outside the workspace, if the fixture has one; every change set covers it, too. */
  readonly git: string | undefined
  readonly store: ChangeStore
  readonly options: ChangeStoreOptions
  readonly logged: string[]
  at(path: string): string
  /** Begins a command: it changes a copy of the workspace, and the private view gets what it changed. */
  command(change: (at: (path: string) => string) => void, id?: string): Promise<FixtureCommand>
  /** Does the same as `command`, and applies the result. */
  applied(change: (at: (path: string) => string) => void): Promise<string>
}

/** `wanted` is what the workspace looks like afterwards. */
type FixtureCommand = ToApply & { readonly changes: readonly Change[]; readonly wanted: { readonly [path: string]: EntryContent } }

export const about: About = { run: 'run_1', call: 'call_1', conversation: 'con_1', tool: 'shell', command: 'make', at: 1_800_000_000_000 }
export const limits = { keepBytes: 1e9, keepDays: 30, keepSets: 100 }

/** `workspaceIn` is another folder for the workspace, on another file system for example; `gitIn` is the same for a git directory outside. */
export async function createFixture(
  more: Partial<ChangeStoreOptions> & { readonly workspaceIn?: string; readonly storeIn?: string; readonly gitIn?: string } = {},
): Promise<Fixture> {
  const base = realpathSync(mkdtempSync(join(more.storeIn ?? tmpdir(), 'braidclaw-changes-')))
  const above = more.workspaceIn === undefined ? base : realpathSync(mkdtempSync(join(more.workspaceIn, 'braidclaw-changes-')))
  const root = join(above, 'workspace')
  const folder = join(base, 'changes')
  mkdirSync(root)
  mkdirSync(folder)
  const git = more.gitIn === undefined ? undefined : realpathSync(mkdtempSync(join(more.gitIn, 'braidclaw-git-')))
  const logged: string[] = []
  const counter = { sets: 0 }
  const options: ChangeStoreOptions = {
    folder,
    workspace: root,
    log: (level, message, fields) => logged.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
    now: () => about.at,
    limits,
    ...more,
  }
  const store = openChangeStore(options)
  const fixture: Fixture = {
    base,
    root,
    git,
    store,
    options,
    logged,
    at: (path) => join(root, path),
    async command(change, id = `tx-${++counter.sets}`) {
      const view = createView(join(folder, id), root)
      const copy = join(view, 'copy')
      Bun.spawnSync(['cp', '-a', '--', root, copy])
      change((path) => join(copy, path))
      const changes = changesBetween(root, copy)
      const wanted = picture(copy)
      for (const made of changes) if (made.after !== undefined) give(copy, join(view, 'up'), made)
      await removeTree(copy)
      if (git !== undefined) {
        const { dev, ino } = lstatSync(git, { bigint: true })
        writeFileSync(join(view, 'outside'), JSON.stringify({ root, git, common: git, place: `${dev}:${ino}` }))
        mkdirSync(join(view, 'up.git'))
        Bun.spawnSync(['cp', '-a', '--', git, copy])
        change((path) => join(copy, path))
        const own = changesBetween(git, copy)
        Object.assign(wanted, pictureBelow(git, picture(copy)))
        for (const made of own) if (made.after !== undefined) give(copy, join(view, 'up.git'), made)
        await removeTree(copy)
        changes.push(...own.map(({ path, bytes: _, ...states }) => ({ path: `${git}/${path}`, ...states })))
      }
      return { id, changes, wanted, about: { ...about, at: about.at + counter.sets } }
    },
    async applied(change) {
      const set = await fixture.command(change)
      const done = await store.apply(set)
      if (!done.ok) throw new Error(done.message)
      return set.id
    },
    async [Symbol.asyncDispose]() {
      for (const path of new Set([base, above, git ?? base])) await removeTree(path)
    },
  }
  return fixture
}

/** Makes a small tree with everything that a file system has. */
export function furnish({ at }: Fixture): void {
  mkdirSync(at('src/deep'), { recursive: true })
  writeFileSync(at('src/a.txt'), 'alpha')
  writeFileSync(at('src/b.sh'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(at('src/deep/c'), 'c')
  writeFileSync(at('gone'), 'gone')
  symlinkSync('src/a.txt', at('link'))
  mkdirSync(at('old/inner'), { recursive: true })
  writeFileSync(at('old/inner/x'), 'x')
  writeFileSync(at('becomes-folder'), 'file')
}

/** Changes it in every way. */
export function everything(at: (path: string) => string): void {
  writeFileSync(at('src/a.txt'), 'beta')
  chmodSync(at('src/b.sh'), 0o600)
  unlinkSync(at('gone'))
  unlinkSync(at('link'))
  symlinkSync('src/deep', at('link'))
  rmSync(at('old'), { recursive: true })
  writeFileSync(at('old'), 'a file now')
  unlinkSync(at('becomes-folder'))
  mkdirSync(at('becomes-folder/sub'), { recursive: true })
  writeFileSync(at('becomes-folder/sub/f'), 'f')
  mkdirSync(at('new/ü'), { recursive: true, mode: 0o750 })
  writeFileSync(at('new/ü/file'), 'new')
  renameSync(at('src/deep/c'), at('src/c'))
  chmodSync(at('src/deep'), 0o700)
}

/** The folders of a private view and the mark of its beginning; a command needs longer than a tick of the clock until it sees a file. */
export function createView(view: string, workspace: string): string {
  for (const folder of [view, join(view, 'up'), join(view, 'work')]) mkdirSync(folder, { mode: 0o700 })
  const index = join(workspace, '.git/index')
  if (existsSync(index)) linkSync(index, join(view, 'index'))
  writeFileSync(join(view, 'start'), '')
  Bun.sleepSync(11)
  return view
}

function give(copy: string, up: string, { path, bytes, after }: Change): void {
  const name = bytes === undefined ? Buffer.from(path) : Buffer.from(bytes, 'base64')
  const [from, to] = [copy, up].map((root) => Buffer.concat([Buffer.from(`${root}/`), name]))
  if (from === undefined || to === undefined) return
  const parts = name.toString('latin1').split('/')
  for (let depth = 1; depth < parts.length; depth++)
    mkdirSync(Buffer.from(join(up, ...parts.slice(0, depth)), 'latin1'), { recursive: true })
  if (after?.kind === 'folder') mkdirSync(to, { recursive: true })
  else renameSync(from, to)
}

/** Returns the changes from `before` to `after`, parents before their content. */
export function changesBetween(before: string, after: string): Change[] {
  const [old, now] = [statesOf(before), statesOf(after)]
  const names = [...new Set([...old.keys(), ...now.keys()])].sort()
  return names.flatMap((raw): Change[] => {
    const [was, is] = [old.get(raw), now.get(raw)]
    if (JSON.stringify(was) === JSON.stringify(is)) return []
    return [{ ...namesOf(raw), ...(was && { before: was.state }), ...(is && { after: is.state }) }]
  })
}

type EntryContent = { readonly state: EntryState; readonly modified?: string }

export function statesOf(root: string, below: RawName = '', found = new Map<RawName, EntryContent>()): Map<RawName, EntryContent> {
  for (const name of readdirSync(bytes(root, below), { encoding: 'buffer' })) {
    const raw = `${below === '' ? '' : `${below}/`}${name.toString('latin1')}`
    const path = bytes(root, raw)
    const stat = lstatSync(path, { bigint: true })
    const mode = Number(stat.mode & 0o7777n)
    if (stat.isDirectory()) {
      found.set(raw, { state: { kind: 'folder', mode } })
      statesOf(root, raw, found)
    } else if (stat.isSymbolicLink()) {
      found.set(raw, { state: { kind: 'link', mode: 0o777, target: readlinkSync(path) }, modified: String(stat.mtimeNs) })
    } else {
      const content = stat.isFile() ? readFileSync(path) : Buffer.alloc(0)
      const state = { kind: stat.isFile() ? ('file' as const) : ('other' as const), mode, size: content.length, sha256: sha256(content) }
      found.set(raw, { state, modified: String(stat.mtimeNs) })
    }
  }
  return found
}

function bytes(root: string, raw: RawName): Buffer {
  return Buffer.concat([Buffer.from(raw === '' ? root : `${root}/`), Buffer.from(raw, 'latin1')])
}

function pictureBelow(folder: string, found: ReturnType<typeof picture>): ReturnType<typeof picture> {
  return Object.fromEntries(Object.entries(found).map(([path, entry]) => [`${Buffer.from(folder).toString('latin1')}/${path}`, entry]))
}

/** A picture of the workspace and of the git directory outside. */
export function pictureOf({ root, git }: Fixture): { readonly [path: string]: EntryContent } {
  return { ...picture(root), ...(git !== undefined && pictureBelow(git, picture(git))) }
}

/** A picture of a tree that two equal trees share: content, modes, links, times of files. */
export function picture(root: string): { readonly [path: string]: EntryContent } {
  return Object.fromEntries([...statesOf(root)].sort(([a], [b]) => (a < b ? -1 : 1)))
}
