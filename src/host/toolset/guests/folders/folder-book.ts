/**
 * Keeps folders of other people's programs and texts in a home, such as plugins: it finds them, knows which exact files were approved, and
 * installs and removes them. What is used is a private copy of the files that were approved.
 */

import { existsSync, lstatSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { isObject } from '../../../../kit/json.ts'
import { entriesIn } from '../../../../kit/proc.ts'
import { didYouMean, quote } from '../../../../kit/text.ts'
import type { Change, ChangeSet, EntryState } from '../../../../runtime/changes.ts'
import { FailureError, orFailure } from '../../../failure.ts'
import { openApprovedBook } from '../approved-book.ts'
import { copyFolder, type FileDigests, type FolderFiles, readFolderFiles } from './folder-files.ts'

/** `source` is where it was installed from; absent for a folder that somebody put there. */
type Entry = {
  readonly source?: string
  readonly enabled: boolean
  readonly approved?: { readonly digest: string; readonly files: FileDigests }
}

export type WholeFiles = Extract<FolderFiles, { ok: true }>

/** `entry.approved` has other files than `files` when the state is `changed`. */
export type GuestFolder<Content> = { readonly name: string; readonly folder: string; readonly entry?: Entry } & (
  | { readonly state: 'broken'; readonly problems: readonly string[] }
  | { readonly state: 'approved' | 'disabled' | 'changed' | 'not approved'; readonly manifest: Content; readonly files: WholeFiles }
)

export type SoundFolder<Content> = Exclude<GuestFolder<Content>, { readonly state: 'broken' }>

/** One kind of folders of a home, such as plugins. */
export type FolderKind<Content> = {
  readonly home: string
  readonly noun: 'plugin' | 'skill'
  /** The file with the approvals. */
  readonly book: string
  /** The folder that the installed ones are in, each under its name. */
  readonly root: string
  /** Reads what the folder says of itself. @param as the beginning of each problem. @throws FailureError that names every problem */
  check(folder: string, as: string, files?: FolderFiles): { readonly manifest: Content; readonly files: WholeFiles }
}

export type FolderBook<Content extends { readonly name: string }> = ReturnType<typeof openFolderBook<Content>>

/** No folder needs to exist. A folder at another place than `root` can be approved, too: its name is then its absolute path. */
export function openFolderBook<Content extends { readonly name: string }>(kind: FolderKind<Content>) {
  const { home, noun, root } = kind
  const { read, change } = openApprovedBook({ home, file: kind.book, noun, isEntry })
  const reader = createReader(kind, read)
  const { sound, find, inspect, copyOf, copyPath } = reader
  const forget = (entry: Entry | undefined) => {
    if (entry?.approved) rmSync(copyPath(entry.approved.digest), { recursive: true, force: true })
  }

  return {
    ...reader,
    /** Approves the files of this digest, and no others. @throws FailureError when the folder is broken or has other files */
    approve: (name: string, digest: string) =>
      change((book) => {
        const { folder, files, entry } = sound(name)
        if (files.digest !== digest) throw new FailureError('error', `${name} changed while it was shown; nothing was approved`)
        copyOf(folder, files)
        if (entry?.approved?.digest !== digest) forget(entry)
        book.set(name, { ...entry, enabled: true, approved: { digest, files: files.files } })
      }),
    /** @throws FailureError when it was never approved */
    enable: (name: string, enabled: boolean) =>
      change((book) => {
        const { entry } = find(name)
        if (!entry?.approved) throw new FailureError('error', `${name} is not approved; run: braidclaw ${noun} approve ${name}`)
        book.set(name, { ...entry, enabled })
      }),
    /** Deletes an installed folder; of a folder at another place it only forgets the approval. */
    remove: (name: string) =>
      change((book) => {
        const { folder, entry } = find(name)
        if (!isAbsolute(name)) rmSync(folder, { recursive: true, force: true })
        forget(entry)
        book.delete(name)
      }),
    /**
     * Copies a folder into the home and remembers where it came from. With `replace` it takes the place of the installed one. It approves
     * nothing. @returns its name. @throws FailureError when the folder is not sound, or one of that name is there
     */
    async install(from: string, source: string, replace?: string): Promise<string> {
      const { manifest, files } = kind.check(from, source)
      const { name } = manifest
      if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(name))
        throw failure(source, `the name ${quote(name)} is not made of a-z, 0-9 and "-", 64 at most`)
      if (replace !== undefined && replace !== name)
        throw new FailureError('error', `${source} is now called ${quote(name)}, not ${quote(replace)}; install it as another ${noun}`)
      const folder = join(root, name)
      await change((book) => {
        const remedy = `run: braidclaw ${noun} update ${name}, or: braidclaw ${noun} remove ${name}`
        if (replace === undefined && existsSync(folder)) throw new FailureError('error', `${folder} is there already; ${remedy}`)
        // The copy of what was approved is what a later approval compares with.
        const earlier = replace === undefined ? undefined : inspect(name)
        if (earlier?.state === 'approved') copyOf(folder, earlier.files)
        const draft = join(root, `.new-${crypto.randomUUID()}`)
        copyFolder(from, draft, files.digest)
        rmSync(folder, { recursive: true, force: true })
        renameSync(draft, folder)
        book.set(name, { enabled: true, ...book.get(name), source })
      })
      return name
    },
  }
}

function isEntry(entry: unknown): entry is Entry {
  if (!isObject(entry) || typeof entry.enabled !== 'boolean') return false
  const { approved, source } = entry
  const isKnown = isObject(approved) && /^[0-9a-f]{64}$/.test(String(approved.digest)) && isObject(approved.files)
  return (approved === undefined || isKnown) && (source === undefined || typeof source === 'string')
}

function createReader<Content extends { readonly name: string }>(
  { home, noun, root, check }: FolderKind<Content>,
  readBook: () => ReadonlyMap<string, Entry>,
) {
  const known = new Map<string, FolderFiles>()
  const names = () =>
    entriesIn(root)
      .flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : []))
      .toSorted()
  const copyPath = (digest: string) => join(home, 'run', `${noun}s`, digest)

  function inspect(name: string, book = readBook()): GuestFolder<Content> {
    const folder = isAbsolute(name) ? name : join(root, name)
    const [entry, read] = [book.get(name), readFolderFiles(folder, known.get(name))]
    known.set(name, read)
    const facts = { name, folder, entry }
    const checked = orFailure(() => check(folder, '', read))
    if (checked instanceof FailureError) return { ...facts, state: 'broken', problems: checked.problems }
    const { manifest, files } = checked
    if (manifest.name !== name && !isAbsolute(name)) {
      const problem = `its manifest says name = ${quote(manifest.name)}, and its folder is called ${quote(name)}; rename one of them`
      return { ...facts, state: 'broken', problems: [problem] }
    }
    const changed = entry?.approved !== undefined && entry.approved.digest !== files.digest
    const state = !entry?.approved ? 'not approved' : changed ? 'changed' : entry.enabled ? 'approved' : 'disabled'
    return { ...facts, state, manifest, files }
  }

  /** @throws FailureError `usage` when there is none of that name */
  function find(name: string): GuestFolder<Content> {
    const there = names()
    if (there.includes(name) || isAbsolute(name)) return inspect(name)
    const all = there.length === 0 ? `there are none in ${root}` : `there are: ${there.join(', ')}`
    throw new FailureError('usage', `no ${noun} ${quote(name)}${didYouMean(name, there) || `; ${all}`}`)
  }

  return {
    root,
    copyPath,
    inspect,
    find,
    /** @throws FailureError when there is no sound one of that name */
    sound(name: string): SoundFolder<Content> {
      const found = find(name)
      if (found.state !== 'broken') return found
      throw failure(`${noun} ${name}`, ...found.problems)
    },
    /** Returns the private copy of exactly these files. @throws FailureError when they cannot be copied */
    copyOf(folder: string, { digest }: WholeFiles): string {
      const copy = copyPath(digest)
      const kept = existsSync(copy) ? readFolderFiles(copy) : undefined
      if (!kept?.ok || kept.digest !== digest) {
        // A program that ran without a sandbox may have changed it.
        rmSync(copy, { recursive: true, force: true })
        copyFolder(folder, copy, digest)
      }
      return realpathSync(copy)
    },
    /** Looks at every installed folder, or only at those that are approved and enabled. */
    list(of: 'all' | 'enabled' = 'all'): readonly GuestFolder<Content>[] {
      const book = readBook()
      const wanted = of === 'all' ? names() : [...book].flatMap(([name, { enabled, approved }]) => (enabled && approved ? [name] : []))
      return wanted.map((name) => inspect(name, book))
    },
  }
}

type Copies = { copyPath(digest: string): string }

/** Returns what changed since the approval; undefined for a folder that was never approved. */
export function differenceOf({ copyPath }: Copies, { folder, entry, files }: SoundFolder<unknown>): ChangeSet | undefined {
  if (entry?.approved === undefined) return undefined
  const { digest, files: before } = entry.approved
  const paths = [...new Set([...Object.keys(before), ...Object.keys(files.files)])].filter((path) => before[path] !== files.files[path])
  const changes = paths.toSorted().map((path): Change => ({ path, before: stateOf(before[path]), after: stateOf(files.files[path]) }))
  const content: ChangeSet['content'] = ({ path }, side, maxBytes) => {
    const at = join(side === 'before' ? copyPath(digest) : folder, path)
    const found = lstatSync(at, { throwIfNoEntry: false })
    return found?.isFile() && found.size <= maxBytes ? readFileSync(at) : undefined
  }
  return { stage: 'proposed', changes, content }
}

function stateOf(known: string | undefined): EntryState | undefined {
  if (known === undefined) return undefined
  const [kind, sha256] = known.split(' ')
  return kind === 'l' ? { kind: 'link', mode: 0o777, target: sha256 } : { kind: 'file', mode: kind === 'x' ? 0o755 : 0o644, sha256 }
}

/** Makes one error of several problems, each with the same beginning. */
export function failure(as: string, ...problems: readonly string[]): FailureError {
  const says = problems.map((problem) => (as === '' ? problem : `${as}: ${problem}`))
  return new FailureError('error', says)
}
