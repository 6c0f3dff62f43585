/**
 * Keeps the plugins of a home: it finds their folders, knows which exact files were approved, and installs and removes them. A plugin runs
 * only from a private copy of the files that were approved.
 */

import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { isObject, parseJson } from '../../../kit/json.ts'
import { didYouMean, quote } from '../../../kit/text.ts'
import type { Change, ChangeSet, EntryState } from '../../../runtime/changes.ts'
import { openLibc } from '../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../workspace/changes/turns.ts'
import { FailureError } from '../../failure.ts'
import { approvedPlugins } from '../tool-selection.ts'
import { isPluginName, manifestName, type PluginManifest, readManifest } from './manifest.ts'
import { copyPlugin, type FileDigests, type PluginFiles, readPluginFiles, whyNoProgram } from './plugin-files.ts'

/** `at` is when it was approved, in milliseconds since 1970. */
export type PluginApproval = { readonly digest: string; readonly files: FileDigests; readonly enabled: boolean; readonly at: number }

export type WholeFiles = Extract<PluginFiles, { ok: true }>

/**
 * `approval` belongs to the files that were approved last, which are others than `files` when the state is `changed`. `source` is where it was installed from; absent for a folder that somebody put there.
 */
export type Plugin = { readonly name: string; readonly folder: string; readonly approval?: PluginApproval; readonly source?: string } & (
  | { readonly state: 'broken'; readonly problems: readonly string[] }
  | { readonly state: 'approved' | 'disabled' | 'changed' | 'not approved'; readonly manifest: PluginManifest; readonly files: WholeFiles }
)

export type SoundPlugin = Exclude<Plugin, { readonly state: 'broken' }>

type Book = { readonly approvals: { readonly [name: string]: PluginApproval }; readonly sources: { readonly [name: string]: string } }

export type Plugins = ReturnType<typeof openPlugins>

/** No folder needs to exist. */
export function openPlugins(home: string, now: () => number = Date.now) {
  const reader = createReader(home)
  const { root, find, inspect, copyOf, copyPath } = reader
  const { change } = createBook(home)
  const forget = (approval: PluginApproval | undefined) => {
    if (approval) rmSync(copyPath(approval.digest), { recursive: true, force: true })
  }

  return {
    ...reader,
    /** Approves the files of this digest, and no others. @throws FailureError when the plugin is broken or has other files */
    approve(name: string, digest: string): Promise<void> {
      return change(({ approvals, ...rest }) => {
        const plugin = find(name)
        if (plugin.state === 'broken') throw broken(plugin)
        if (plugin.files.digest !== digest) throw new FailureError('error', `${name} changed while it was shown; nothing was approved`)
        copyOf(plugin.folder, plugin.files)
        if (plugin.approval?.digest !== digest) forget(plugin.approval)
        const approval = { digest, files: plugin.files.files, enabled: true, at: now() }
        return { next: { ...rest, approvals: { ...approvals, [name]: approval } }, result: undefined }
      })
    },
    /** @throws FailureError when it was never approved */
    enable(name: string, enabled: boolean): Promise<void> {
      return change(({ approvals, ...rest }) => {
        const { approval } = find(name)
        if (approval === undefined) throw new FailureError('error', `${name} is not approved; run: braidclaw plugin approve ${name}`)
        return { next: { ...rest, approvals: { ...approvals, [name]: { ...approval, enabled } } }, result: undefined }
      })
    },
    remove(name: string): Promise<void> {
      return change(({ approvals, sources }) => {
        const { folder, approval } = find(name)
        rmSync(folder, { recursive: true, force: true })
        forget(approval)
        return { next: { approvals: without(approvals, name), sources: without(sources, name) }, result: undefined }
      })
    },
    /**
     * Copies a folder into the home and remembers where it came from. With `replace` it takes the place of the installed one. It approves
     * nothing. @returns its name. @throws FailureError when the folder is not a sound plugin, or one of that name is there
     */
    install(from: string, { source, replace }: Installing): Promise<string> {
      return change(({ approvals, sources }) => {
        const checked = checkFolder(from, readPluginFiles(from))
        if (!checked.ok)
          throw new FailureError(
            'error',
            checked.problems.map((problem) => `${source}: ${problem}`),
          )
        const { name } = checked.manifest
        if (replace !== undefined && replace !== name)
          throw new FailureError('error', `${source} is now called ${quote(name)}, not ${quote(replace)}; install it as another plugin`)
        const folder = join(root, name)
        if (replace === undefined && existsSync(folder))
          throw new FailureError(
            'error',
            `${folder} is there already; run: braidclaw plugin update ${name}, or: braidclaw plugin remove ${name}`,
          )
        // The copy of what was approved is what a later approval compares with.
        const earlier = replace === undefined ? undefined : inspect(name)
        if (earlier?.state === 'approved') copyOf(folder, earlier.files)
        const draft = join(root, `.new-${crypto.randomUUID()}`)
        const why = copyPlugin(from, draft, checked.files)
        if (why !== undefined) throw new FailureError('error', `${source} cannot be copied: ${why}`)
        rmSync(folder, { recursive: true, force: true })
        renameSync(draft, folder)
        return { next: { approvals, sources: { ...sources, [name]: source } }, result: name }
      })
    },
  }
}

type Installing = { readonly source: string; readonly replace?: string }

/** Reads and writes the list of approvals. */
function createBook(home: string) {
  const file = approvedPlugins(home)

  function read(): Book {
    const found = readConfigFile(file)
    if (found.state === 'missing') return { approvals: {}, sources: {} }
    const value = found.state === 'text' ? parseJson(found.text) : undefined
    if (isBook(value)) return value
    throw new FailureError('error', `${file} is damaged, so no plugin runs; remove the file and approve the plugins again`)
  }

  /** Two processes that write the list at once would undo each other's change. */
  function change<T>(work: (book: Book) => { readonly next: Book; readonly result: T }): Promise<T> {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    return createTurns(home, openLibc).take(async () => {
      const { next, result } = work(read())
      const draft = `${file}.${crypto.randomUUID()}`
      writeFileSync(draft, `${JSON.stringify(next, null, 1)}\n`, { mode: 0o600, flag: 'wx' })
      renameSync(draft, file)
      return result
    })
  }

  return { read, change }
}

function createReader(home: string) {
  const root = join(home, 'plugins')
  const book = createBook(home)
  const known = new Map<string, PluginFiles>()
  const copyPath = (digest: string) => join(home, 'run', 'plugins', digest)

  function inspect(name: string, { approvals, sources } = book.read()): Plugin {
    const folder = join(root, name)
    const files = readPluginFiles(folder, known.get(name))
    known.set(name, files)
    const facts = { name, folder, approval: approvals[name], source: sources[name] }
    const checked = checkFolder(folder, files)
    if (!checked.ok) return { ...facts, state: 'broken', problems: checked.problems }
    const { manifest } = checked
    if (manifest.name !== name) {
      const problem = `its manifest says name = ${quote(manifest.name)}, and its folder is called ${quote(name)}; rename one of them`
      return { ...facts, state: 'broken', problems: [problem] }
    }
    const { approval } = facts
    const changed = approval !== undefined && approval.digest !== checked.files.digest
    const state = approval === undefined ? 'not approved' : changed ? 'changed' : approval.enabled ? 'approved' : 'disabled'
    return { ...facts, state, manifest, files: checked.files }
  }

  return {
    root,
    copyPath,
    inspect,
    /** Returns the private copy of exactly these files. @throws FailureError when they cannot be copied */
    copyOf(folder: string, files: WholeFiles): string {
      const copy = copyPath(files.digest)
      const why = existsSync(copy) ? undefined : copyPlugin(folder, copy, files)
      if (why !== undefined && !existsSync(copy)) throw new FailureError('error', `${folder} cannot be copied: ${why}`)
      return realpathSync(copy)
    },
    /** @throws FailureError `usage` when there is no plugin of that name */
    find(name: string): Plugin {
      const there = names(root)
      if (there.includes(name)) return inspect(name)
      const all = there.length === 0 ? `there are none in ${root}` : `there are: ${there.join(', ')}`
      throw new FailureError('usage', `no plugin ${quote(name)}${didYouMean(name, there) || `; ${all}`}`)
    },
    list(): readonly Plugin[] {
      const now = book.read()
      return names(root).map((name) => inspect(name, now))
    },
    /** Returns the plugins that were approved at some time and are enabled. Looks at no other folder. */
    enabled(): readonly Plugin[] {
      const now = book.read()
      return Object.keys(now.approvals).flatMap((name) => (now.approvals[name]?.enabled ? [inspect(name, now)] : []))
    },
    /** Returns what changed since the approval; undefined for a plugin that was never approved. */
    differenceOf({ folder, approval, files }: SoundPlugin): ChangeSet | undefined {
      if (approval === undefined) return undefined
      const [before, after] = [approval.files, files.files]
      const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted()
      const changes = paths.flatMap((path): Change[] =>
        before[path] === after[path] ? [] : [{ path, before: stateOf(before[path]), after: stateOf(after[path]) }],
      )
      const content: ChangeSet['content'] = ({ path }, side, maxBytes) =>
        contentOf(join(side === 'before' ? copyPath(approval.digest) : folder, path), maxBytes)
      return { stage: 'proposed', changes, content }
    },
  }
}

export function broken({ name, problems }: Extract<Plugin, { readonly state: 'broken' }>): FailureError {
  return new FailureError(
    'error',
    problems.map((problem) => `plugin ${name}: ${problem}`),
  )
}

function names(root: string): readonly string[] {
  if (!existsSync(root)) return []
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  return folders.map(({ name }) => name).toSorted()
}

export type CheckedFolder =
  | { readonly ok: true; readonly manifest: PluginManifest; readonly files: WholeFiles }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Reads the manifest of a folder and checks that the files that it names are there. It runs nothing. */
export function checkFolder(folder: string, files: PluginFiles): CheckedFolder {
  if (!files.ok) return { ok: false, problems: [files.why] }
  const read = readConfigFile(join(folder, manifestName))
  if (read.state === 'missing') return { ok: false, problems: [`it has no ${manifestName}`] }
  if (read.state === 'unusable') return { ok: false, problems: [`${manifestName} ${read.why}`] }
  const parsed = readManifest(read.text)
  if (!parsed.ok) return { ok: false, problems: parsed.problems.map((problem) => `${manifestName}: ${problem}`) }
  const { manifest } = parsed
  const programs = [manifest.process, ...manifest.tools.map(({ command }) => command), ...manifest.hooks.map(({ command }) => command)]
  const wrong = [...new Set(programs)].flatMap((path) => (path === undefined ? [] : (whyNoProgram(folder, path) ?? [])))
  return wrong.length > 0 ? { ok: false, problems: wrong } : { ok: true, manifest, files }
}

function isBook(value: unknown): value is Book {
  if (!isObject(value) || !isObject(value.approvals) || !isObject(value.sources)) return false
  return (
    Object.values(value.sources).every((source) => typeof source === 'string') &&
    Object.entries(value.approvals).every(
      ([name, one]) =>
        isPluginName(name) &&
        isObject(one) &&
        typeof one.digest === 'string' &&
        /^[0-9a-f]{64}$/.test(one.digest) &&
        typeof one.enabled === 'boolean' &&
        typeof one.at === 'number' &&
        isObject(one.files) &&
        Object.values(one.files).every((digest) => typeof digest === 'string'),
    )
  )
}

function without<T>(record: { readonly [name: string]: T }, name: string): { readonly [name: string]: T } {
  return Object.fromEntries(Object.entries(record).filter(([key]) => key !== name))
}

function stateOf(known: string | undefined): EntryState | undefined {
  if (known === undefined) return undefined
  const [kind, digest = ''] = known.split(' ')
  return kind === 'l' ? { kind: 'link', mode: 0o777 } : { kind: 'file', mode: kind === 'x' ? 0o755 : 0o644, sha256: digest }
}

function contentOf(path: string, maxBytes: number): Uint8Array | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isFile() && found.size <= maxBytes ? readFileSync(path) : undefined
}
