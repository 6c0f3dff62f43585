/**
 * Keeps the plugins of a home: it finds their folders, knows which exact files were approved, and installs and removes them. A plugin runs
 * only from a private copy of the files that were approved.
 */

import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { isObject } from '../../../../kit/json.ts'
import { didYouMean, quote } from '../../../../kit/text.ts'
import type { Change, ChangeSet, EntryState } from '../../../../runtime/changes.ts'
import { FailureError } from '../../../failure.ts'
import { approvedPlugins } from '../../tool-selection.ts'
import { openApprovedBook } from '../approved-book.ts'
import { manifestName, type PluginManifest, readManifest } from './manifest.ts'
import { copyPlugin, type FileDigests, type PluginFiles, readPluginFiles } from './plugin-files.ts'

/** `source` is where it was installed from; absent for a folder that somebody put there. */
type Entry = {
  readonly source?: string
  readonly enabled: boolean
  readonly approved?: { readonly digest: string; readonly files: FileDigests }
}

type WholeFiles = Extract<PluginFiles, { ok: true }>

/** `entry.approved` has other files than `files` when the state is `changed`. */
export type Plugin = { readonly name: string; readonly folder: string; readonly entry?: Entry } & (
  | { readonly state: 'broken'; readonly problems: readonly string[] }
  | { readonly state: 'approved' | 'disabled' | 'changed' | 'not approved'; readonly manifest: PluginManifest; readonly files: WholeFiles }
)

export type SoundPlugin = Exclude<Plugin, { readonly state: 'broken' }>
export type Plugins = ReturnType<typeof openPlugins>

/** No folder needs to exist. */
export function openPlugins(home: string) {
  const reader = createReader(home)
  const { root, sound, find, inspect, copyOf, copyPath } = reader
  const { change } = openBook(home)
  const forget = (entry: Entry | undefined) => {
    if (entry?.approved) rmSync(copyPath(entry.approved.digest), { recursive: true, force: true })
  }

  return {
    ...reader,
    /** Approves the files of this digest, and no others. @throws FailureError when the plugin is broken or has other files */
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
        if (!entry?.approved) throw new FailureError('error', `${name} is not approved; run: braidclaw plugin approve ${name}`)
        book.set(name, { ...entry, enabled })
      }),
    remove: (name: string) =>
      change((book) => {
        const { folder, entry } = find(name)
        rmSync(folder, { recursive: true, force: true })
        forget(entry)
        book.delete(name)
      }),
    /**
     * Copies a folder into the home and remembers where it came from. With `replace` it takes the place of the installed one. It approves
     * nothing. @returns its name. @throws FailureError when the folder is not a sound plugin, or one of that name is there
     */
    async install(from: string, source: string, replace?: string): Promise<string> {
      const { manifest, files } = checkFolder(from, source)
      const { name } = manifest
      if (replace !== undefined && replace !== name)
        throw new FailureError('error', `${source} is now called ${quote(name)}, not ${quote(replace)}; install it as another plugin`)
      const folder = join(root, name)
      await change((book) => {
        const remedy = `run: braidclaw plugin update ${name}, or: braidclaw plugin remove ${name}`
        if (replace === undefined && existsSync(folder)) throw new FailureError('error', `${folder} is there already; ${remedy}`)
        // The copy of what was approved is what a later approval compares with.
        const earlier = replace === undefined ? undefined : inspect(name)
        if (earlier?.state === 'approved') copyOf(folder, earlier.files)
        const draft = join(root, `.new-${crypto.randomUUID()}`)
        copyPlugin(from, draft, files.digest)
        rmSync(folder, { recursive: true, force: true })
        renameSync(draft, folder)
        book.set(name, { enabled: true, ...book.get(name), source })
      })
      return name
    },
  }
}

function openBook(home: string) {
  return openApprovedBook({ home, file: approvedPlugins(home), noun: 'plugin', isEntry })
}

function isEntry(entry: unknown): entry is Entry {
  if (!isObject(entry) || typeof entry.enabled !== 'boolean') return false
  const { approved, source } = entry
  const isKnown = isObject(approved) && /^[0-9a-f]{64}$/.test(String(approved.digest)) && isObject(approved.files)
  return (approved === undefined || isKnown) && (source === undefined || typeof source === 'string')
}

function createReader(home: string) {
  const root = join(home, 'plugins')
  const { read } = openBook(home)
  const known = new Map<string, PluginFiles>()
  const copyPath = (digest: string) => join(home, 'run', 'plugins', digest)

  function inspect(name: string, book = read()): Plugin {
    const folder = join(root, name)
    const [entry, found] = [book.get(name), readPluginFiles(folder, known.get(name))]
    known.set(name, found)
    const facts = { name, folder, entry }
    try {
      const { manifest, files } = checkFolder(folder, '', found)
      if (manifest.name !== name) {
        const problem = `its manifest says name = ${quote(manifest.name)}, and its folder is called ${quote(name)}; rename one of them`
        return { ...facts, state: 'broken', problems: [problem] }
      }
      const changed = entry?.approved !== undefined && entry.approved.digest !== files.digest
      const state = !entry?.approved ? 'not approved' : changed ? 'changed' : entry.enabled ? 'approved' : 'disabled'
      return { ...facts, state, manifest, files }
    } catch (error) {
      if (error instanceof FailureError) return { ...facts, state: 'broken', problems: error.problems }
      throw error
    }
  }

  /** @throws FailureError `usage` when there is no plugin of that name */
  function find(name: string): Plugin {
    const there = names(root)
    if (there.includes(name)) return inspect(name)
    const all = there.length === 0 ? `there are none in ${root}` : `there are: ${there.join(', ')}`
    throw new FailureError('usage', `no plugin ${quote(name)}${didYouMean(name, there) || `; ${all}`}`)
  }

  return {
    root,
    copyPath,
    inspect,
    find,
    /** @throws FailureError when there is no sound plugin of that name */
    sound(name: string): SoundPlugin {
      const plugin = find(name)
      if (plugin.state !== 'broken') return plugin
      throw new FailureError(
        'error',
        plugin.problems.map((problem) => `plugin ${name}: ${problem}`),
      )
    },
    /** Returns the private copy of exactly these files. @throws FailureError when they cannot be copied */
    copyOf(folder: string, { digest }: WholeFiles): string {
      const copy = copyPath(digest)
      const kept = existsSync(copy) ? readPluginFiles(copy) : undefined
      if (!kept?.ok || kept.digest !== digest) {
        // A plugin that ran without a sandbox may have changed it.
        rmSync(copy, { recursive: true, force: true })
        copyPlugin(folder, copy, digest)
      }
      return realpathSync(copy)
    },
    /** Looks at every folder, or only at the plugins that are approved and enabled. */
    list(of: 'all' | 'enabled' = 'all'): readonly Plugin[] {
      const book = read()
      const wanted = of === 'all' ? names(root) : [...book].flatMap(([name, { enabled, approved }]) => (enabled && approved ? [name] : []))
      return wanted.map((name) => inspect(name, book))
    },
  }
}

/** Returns what changed since the approval; undefined for a plugin that was never approved. */
export function differenceOf({ copyPath }: Pick<Plugins, 'copyPath'>, { folder, entry, files }: SoundPlugin): ChangeSet | undefined {
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

function names(root: string): readonly string[] {
  if (!existsSync(root)) return []
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  return folders.map(({ name }) => name).toSorted()
}

/**
 * Reads the manifest of a folder and checks that the programs that it names are there. It runs nothing. @param as the beginning of each
 * problem. @throws FailureError that names every problem
 */
export function checkFolder(folder: string, as: string, files = readPluginFiles(folder)) {
  const fail = (...problems: readonly string[]) =>
    new FailureError(
      'error',
      problems.map((problem) => (as === '' ? problem : `${as}: ${problem}`)),
    )
  if (!files.ok) throw fail(files.why)
  const read = readConfigFile(join(folder, manifestName))
  if (read.state !== 'text') throw fail(read.state === 'missing' ? `it has no ${manifestName}` : `${manifestName} ${read.why}`)
  const parsed = readManifest(read.text)
  if (!parsed.ok) throw fail(...parsed.problems.map((problem) => `${manifestName}: ${problem}`))
  const { process, tools, hooks } = parsed.manifest
  const programs = [process, ...[...tools, ...hooks].map(({ command }) => command)].filter((path) => path !== undefined)
  const wrong = programs.filter((path) => !/^[xl]/.test(files.files[path] ?? ''))
  const says = (path: string) => (path in files.files ? `is not executable; run: chmod +x ${quote(path)}` : 'does not exist')
  if (wrong.length > 0) throw fail(...new Set(wrong.map((path) => `${quote(path)} ${says(path)}`)))
  return { manifest: parsed.manifest, files }
}

function stateOf(known: string | undefined): EntryState | undefined {
  if (known === undefined) return undefined
  const [kind, sha256] = known.split(' ')
  return kind === 'l' ? { kind: 'link', mode: 0o777, target: sha256 } : { kind: 'file', mode: kind === 'x' ? 0o755 : 0o644, sha256 }
}
