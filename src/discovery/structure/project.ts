/** Knows the facts of a project: its files with their lines, and where each import leads. */

import { isBuiltin } from 'node:module'
import { dirname, join, normalize, relative } from 'node:path'
import { attempt } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import { memo } from '../../kit/lazy.ts'
import { createFactCache, type FactCache } from './fact-cache.ts'
import { languageOf } from './languages.ts'
import type { Import } from './read-imports.ts'

/** Looks at a project without following links. Paths are relative to it, '' is the project itself. No function throws. */
export type Tree = {
  readonly root: string
  kind(path: string): 'file' | 'folder' | 'link' | 'other' | undefined
  /** Is a quicker `kind`; the stamp differs after every change. @returns undefined where `kind` must be asked */
  mark?(path: string): { readonly kind?: ReturnType<Tree['kind']>; readonly stamp: string } | undefined
  /** @returns what a link contains */
  target(path: string): string | undefined
  /** @returns undefined for what is not a text, or longer than `maxBytes` */
  text(path: string, maxBytes: number): string | undefined
  names(folder: string): readonly string[] | undefined
}

/** `target` is a path in the project, `package:NAME`, `outside:PATH`, or `computed:` for a name that is known only at run time. */
export type Channel = Import & { readonly target: string }

type FileFacts = { readonly lines: number; readonly channels: readonly Channel[]; readonly problem?: string }

export type Project = Tree & { facts(path: string): FileFacts | undefined }

const maxBytes = 1_000_000

/** Asks the tree each question at most once. */
export function createProject(given: Tree, cache: FactCache = createFactCache()): Project {
  const kind = memo((path) => (given.mark?.(path) ?? { kind: given.kind(path) }).kind)
  const tree = { ...given, kind, names: memo(given.names) }
  const resolve = createResolver(tree)
  const facts = memo((path): FileFacts | undefined => {
    if (tree.kind(path) !== 'file') return undefined
    const { imports, lines, problem } = cache.of(path, tree.mark?.(path)?.stamp, () => tree.text(path, maxBytes))
    const lead = resolve(path)
    const channels = imports.map((one) => ({ ...one, target: one.specifier === '' ? 'computed:' : lead(one.specifier) }))
    return { lines, channels, problem }
  })
  return { ...tree, facts }
}

const suffixes = ['ts', 'tsx', 'mts', 'cts', 'js', 'jsx', 'mjs', 'cjs', 'json', 'd.ts']

/** A change of such a file can lead every import elsewhere. */
export const steersImports = /(?:^|\/)(?:[tj]sconfig[^/]*\.json|go\.mod|Cargo\.toml)$/

/** Returns where the imports of a file lead. What does not exist leads to the path that it names, so that a rule sees it before it is made. */
function createResolver(tree: Tree): (from: string) => (specifier: string) => string {
  const aliases: (folder: string) => Aliases = memo((folder) => aliasesOf(tree, folder, aliases))
  const isPlain: (path: string) => boolean = memo(
    (path) => path === dirname(path) || (tree.kind(path) !== 'link' && isPlain(dirname(path))),
  )
  const located = memo((path) => {
    const place = path.startsWith('..') || !isPlain(path) ? withoutLinks(tree, path) : path.replace(/\/$/, '')
    if (tree.kind(place) === 'file' || place.startsWith('outside:')) return place
    const typed = place.replace(/\.([mc]?)js(x?)$/, '.$1ts$2')
    const tried = [typed, ...suffixes.flatMap((suffix) => [`${place}.${suffix}`, `${place}/index.${suffix}`])]
    return tried.find((one) => tree.kind(one) === 'file') ?? place
  })
  const files = {
    isFile: (path: string) => tree.kind(withoutLinks(tree, path)) === 'file',
    isFolder: (path: string) => tree.kind(withoutLinks(tree, path)) === 'folder',
    names: (folder: string) => tree.names(folder === '.' ? '' : folder) ?? [],
    text: (path: string) => tree.text(path, maxBytes) ?? '',
  }
  const ofScripts = memo((folder) =>
    memo((specifier): string => {
      const path = specifier.replaceAll('\\', '/').replace(/(?<=.)[?#].*$|^file:\/\//g, '')
      const plain = attempt(() => decodeURIComponent(path)) ?? path
      if (/^\.{1,2}(?:\/|$)/.test(plain)) return located(join(folder, plain))
      if (plain.startsWith('/')) return located(relative(tree.root, plain))
      const named = aliases(folder)(plain).map(located)
      return named.find((one) => tree.kind(one) === 'file') ?? named[0] ?? `package:${packageOf(plain)}`
    }),
  )
  return (from) => {
    const language = languageOf(from)
    if (language === undefined) return ofScripts(dirname(from))
    return (specifier) => {
      const led = language.resolve(files, from, specifier)
      return led.startsWith('package:') ? led : withoutLinks(tree, led)
    }
  }
}

function packageOf(specifier: string): string {
  if (isBuiltin(specifier)) return specifier.includes(':') ? specifier : `node:${specifier}`
  return /^(?:@[^/]*\/)?[^/]*/.exec(specifier)?.[0] ?? specifier
}

/** Follows the links on the way, twenty at most. */
function withoutLinks(tree: Tree, path: string, most = 20): string {
  const names = normalize(path).replace(/\/$/, '').split('/')
  if (names[0] === '..' || most === 0) return `outside:${path}`
  const count = names.findIndex((_, at) => tree.kind(names.slice(0, at + 1).join('/')) === 'link') + 1
  if (count === 0) return names.join('/')
  const link = names.slice(0, count).join('/')
  const target = tree.target(link) ?? ''
  const place = target.startsWith('/') ? relative(tree.root, target) : join(dirname(link), target)
  return withoutLinks(tree, join(place, ...names.slice(count)), most - 1)
}

type Aliases = (specifier: string) => readonly string[]

/** Reads `paths` and `baseUrl` of the nearest tsconfig.json or jsconfig.json. @returns the paths that a name may stand for */
function aliasesOf(tree: Tree, folder: string, above: (folder: string) => Aliases): Aliases {
  const file = ['tsconfig.json', 'jsconfig.json'].map((name) => join(folder, name)).find((path) => tree.kind(path) === 'file')
  if (file === undefined) return folder === dirname(folder) ? () => [] : above(dirname(folder))
  const { paths = {}, baseUrl, from } = compilerOptions(tree, file, 5)
  const start = join(from, baseUrl ?? '.')
  return (specifier) => {
    const named = Object.entries(paths).flatMap(([pattern, targets]) => {
      const [before = '', after] = pattern.split('*')
      const isFit = after === undefined ? specifier === pattern : specifier.startsWith(before) && specifier.endsWith(after)
      const star = specifier.slice(before.length, specifier.length - (after ?? '').length)
      return isFit && Array.isArray(targets) ? targets.map((target) => join(start, String(target).replace('*', star))) : []
    })
    const first = join(start, specifier.split('/')[0] ?? '')
    return named.length === 0 && baseUrl !== undefined && tree.kind(first) !== undefined ? [join(start, specifier)] : named
  }
}

type CompilerOptions = { readonly paths?: object | undefined; readonly baseUrl?: string | undefined; readonly from: string }

/** Follows `extends` to files of the project until one has paths. */
function compilerOptions(tree: Tree, file: string, most: number): CompilerOptions {
  const json: unknown = attempt(() => Bun.JSONC.parse(tree.text(file, maxBytes) ?? ''))
  const { compilerOptions: options, extends: above } = isObject(json) ? json : {}
  const { paths, baseUrl } = isObject(options) ? options : {}
  if (paths === undefined && baseUrl === undefined && typeof above === 'string' && above.startsWith('.') && most > 0)
    return compilerOptions(tree, join(dirname(file), above.replace(/(?<!\.json)$/, '.json')), most - 1)
  return { paths: isObject(paths) ? paths : undefined, baseUrl: typeof baseUrl === 'string' ? baseUrl : undefined, from: dirname(file) }
}
