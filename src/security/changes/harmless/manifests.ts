/** Finds out whether a package manifest or lock file changed in more than its description: scripts, dependencies, hosts. */

import { attempt } from '../../../kit/errors.ts'
import { isObject } from '../../../kit/json.ts'
import { spelt } from '../../targets/protected.ts'
import { type ChangeView, nameOf } from '../change-view.ts'

type ManifestFields = { readonly [name: string]: unknown }

type Manifest = {
  readonly parse: (text: string) => unknown
  /** Dotted names of the fields that no tool runs or installs anything for. */
  readonly harmless: readonly string[]
}

const described = ['name', 'version', 'description', 'keywords', 'license', 'authors', 'homepage', 'repository', 'documentation', 'readme']

const below = (table: string, names: readonly string[]) => names.map((name) => `${table}.${name}`)

const manifests: { readonly [name: string]: Manifest } = {
  'package.json': { parse: JSON.parse, harmless: [...described, 'author', 'contributors', 'bugs', 'funding', 'private', 'sideEffects'] },
  'pyproject.toml': {
    parse: Bun.TOML.parse,
    harmless: [...below('project', [...described, 'classifiers', 'urls']), ...below('tool', ['black', 'ruff', 'isort'])],
  },
  'cargo.toml': { parse: Bun.TOML.parse, harmless: below('package', [...described, 'categories', 'edition', 'rust-version']) },
}

export function isManifestOrLock(path: string): boolean {
  const name = spelt(nameOf(path))
  return Object.hasOwn(manifests, name) || lockFiles.has(name)
}

const lockFiles = new Set(
  (
    'package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock poetry.lock uv.lock pdm.lock pipfile.lock gemfile.lock ' +
    'composer.lock go.sum mix.lock pubspec.lock packages.lock.json flake.lock gradle.lockfile podfile.lock'
  ).split(' '),
)

const mostBytes = 4 * 1024 ** 2

/** @returns why the change of this file asks; undefined when it is harmless, or the file is neither a manifest nor a lock file */
export function manifestRisk(path: string, view: ChangeView): string | undefined {
  const name = spelt(nameOf(path))
  const manifest = Object.hasOwn(manifests, name) ? manifests[name] : undefined
  if (manifest !== undefined && !isOnlyDescription(path, view, manifest)) return 'scripts, dependencies or tool settings of a package'
  if (lockFiles.has(name)) return newHost(path, view)
}

function isOnlyDescription(path: string, view: ChangeView, { parse, harmless }: Manifest): boolean {
  const [before, after] = (['before', 'after'] as const).map((side) => {
    const text = view.text(path, side, mostBytes)
    return text === undefined ? undefined : parsed(text, parse)
  })
  return before !== undefined && after !== undefined && rest(before, harmless) === rest(after, harmless)
}

function parsed(text: string, parse: Manifest['parse']): ManifestFields | undefined {
  return attempt(() => {
    const value = parse(text)
    return isObject(value) ? value : undefined
  })
}

/** JSON of everything but the harmless fields. */
function rest(fields: ManifestFields, harmless: readonly string[], above = ''): string {
  const relevant = Object.entries(fields)
    .filter(([name]) => !harmless.includes(above + name))
    .map(([name, value]) => {
      const isSplit = isObject(value) && harmless.some((entry) => entry.startsWith(`${above}${name}.`))
      return [name, isSplit ? rest(value, harmless, `${above}${name}.`) : JSON.stringify(value)]
    })
  return JSON.stringify(relevant)
}

/** A lock file decides from where packages come. A file that is too large to read, or binary, counts as changed. */
function newHost(path: string, view: ChangeView): string | undefined {
  const after = view.text(path, 'after', mostBytes)
  if (after === undefined) return view.kind(path, 'after') === undefined ? undefined : 'a lock file that cannot be read'
  const known = hosts(view.text(path, 'before', mostBytes) ?? '')
  const added = [...hosts(after)].find((host) => !known.has(host))
  return added && `a lock file with the new host ${JSON.stringify(added)}`
}

function hosts(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/(?:[a-z][a-z+.-]*:\/\/|git@)(?:[^\s"'/@]*@)?([^\s"'/:]+)/gi)].map(([, host = '']) => host.toLowerCase()),
  )
}
