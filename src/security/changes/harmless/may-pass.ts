/**
 * Decides by its path whether a file may change without a question. The list says what may: text, data and source, where such files are
 * already. Everything else asks.
 */

import { memo } from '../../../kit/lazy.ts'
import type { Policy } from '../../policy.ts'
import type { Disk } from '../../targets/link.ts'
import { spelt } from '../../targets/protected.ts'
import { folderOf, inFolder, nameOf } from '../change-view.ts'
import type { ReviewContext } from '../review-context.ts'
import { isManifestOrLock } from './manifests.ts'
import { isHiddenSetting, isRunUnasked } from './run-unasked.ts'

/** The workspace as it was before the change. Paths are relative to it, '' is the workspace. */
type Existing = {
  kind(path: string): string | undefined
  /** @returns the names in a folder */
  names(folder: string): readonly string[] | undefined
  readonly ignored: ReviewContext['ignored']
}

/** Suffixes of what no program loads on its own: prose, tables, pictures, sound, archives. New ones may lie anywhere. */
const inert =
  'md markdown txt text rst adoc asciidoc textile org tex bib log po pot srt vtt golden expected out csv tsv psv jsonl ndjson parquet avro arrow ' +
  'feather orc h5 hdf5 npy npz sqlite sqlite3 db dat bin geojson kml gpx ics vcf xls xlsx ods docx odt pptx odp pdf epub rtf map ' +
  'png jpg jpeg gif webp avif bmp ico tif tiff heic svg eps psd xcf mp3 wav ogg flac m4a mp4 webm mov mkv avi ttf otf woff woff2 eot obj stl gltf glb ' +
  'zip tar gz tgz bz2 xz txz zst 7z br xsd xsl xslt dtd css scss sass less styl'

/** Suffixes of data in which tools keep their settings, too. */
const settings = 'json json5 jsonc yaml yml toml ini cfg conf xml properties plist edn ron neon hjson'

/** Languages of which tools pick up files by their names in the root of a project: a new file there asks. */
const scripts =
  'js mjs cjs jsx ts mts cts tsx vue svelte astro coffee mdx snap|py pyi pyx pxd ipynb|rb erb haml slim|php phtml twig|pl pm t pod|lua|r rmd qmd|jl|' +
  'sh bash zsh ksh|ex exs eex heex leex|erl hrl|scala sc clj cljs cljc groovy kts|dart|swift|hs lhs purs elm|nim|el lisp cl scm ss rkt|tcl|lean'

const compiled =
  'c h cc cpp cxx hh hpp hxx inl ipp m mm cu cuh s asm|go|rs|java kt|cs fs fsi vb razor cshtml xaml|ml mli mll mly re rei|zig|cr|f f90 f95 for|pas adb ads|' +
  'v sv vhd vhdl|glsl vert frag wgsl hlsl metal|sol vy move cairo|html htm xhtml|ejs hbs handlebars mustache pug njk liquid jinja jinja2 j2 tmpl tpl ftl|' +
  'sql proto thrift graphql gql avsc fbs capnp prisma|awk sed|diff patch'

/** `where` a new file may lie: `beside` such files, also in a root; `settings` do not change unasked in a root. */
type Family = { readonly suffixes: ReadonlySet<string>; readonly where: 'anywhere' | 'beside' | 'below the root' | 'settings' }

const families: ReadonlyMap<string, Family> = new Map([
  ...rows('anywhere', [inert]),
  ...rows('settings', settings.split(' ')),
  ...rows('below the root', scripts.split('|')),
  ...rows('beside', compiled.split('|')),
])

function rows(where: Family['where'], texts: readonly string[]): readonly (readonly [string, Family])[] {
  return texts.map(words).flatMap((suffixes) => [...suffixes].map((suffix) => [suffix, { suffixes, where }] as const))
}

/** Their folder is the root of a package, in which tools look for their settings. */
const packageFiles = words(
  'package.json pyproject.toml setup.py cargo.toml go.mod pom.xml build.gradle build.gradle.kts composer.json gemfile mix.exs pubspec.yaml deno.json package.swift',
)

/** Such a folder of the root may be new, when the workspace has code of the same language. */
const usualFolders = words('src lib libs test tests __tests__ doc docs example examples include cmd internal pkg bench benches')

/** Names in capital letters often hold instructions for agents; these documents do not. */
const documents =
  /^(?:readme|changelog|changes|contributing|contributors|licen[cs]e|copying|notice|authors|maintainers|history|news|install|security|support|todo|roadmap|architecture|design|notes|plan|spec|faq|usage|upgrading|migration|code_of_conduct|governance|credits|releasing|report|summary|testing|glossary)\b/i

const foldersSearched = 40

export type PathJudge = {
  /** @returns why a change of this file, or this new folder, asks; undefined: nothing about its path does */
  risk(path: string, isFolder?: boolean): string | undefined
  /**
   * Tells whether git ignores it as output: in a folder, or by its own name when it is neither source nor settings. This says nothing about its
   * risk.
   */
  isOutput(path: string, isFolder?: boolean): boolean
}

/** Manifests and lock files pass here: what they hold decides (manifests.ts). */
export function createPathJudge({ kind, names, ignored }: Existing): PathJudge {
  const namesIn = memo((folder) => names(folder) ?? [])
  const isRoot = memo((folder) => folder === '' || namesIn(folder).some((name) => packageFiles.has(name.toLowerCase())))
  const isIn = memo((key) => search(folderOf(key), familyOf(key)?.suffixes ?? new Set()))

  function risk(path: string, isFolder = false): string | undefined {
    if (isRunUnasked(isFolder ? `${path}/` : path))
      return nameOf(path).includes('.')
        ? 'development tools or agents run or obey it unasked'
        : 'a name without a suffix, as recipes and programs have'
    if (isFolder || isManifestOrLock(path)) return
    if (isOutput(path)) return
    const family = familyOf(path)
    if (family === undefined) return 'neither text, source nor data of a known kind'
    if (family.where === 'settings' && isRoot(folderOf(path))) return 'a file of settings in the root of a project'
    return kind(path) === 'file' || mayBeNew(path, family) ? undefined : 'a new file in a place that holds no such files'
  }

  function mayBeNew(path: string, { suffixes, where }: Family): boolean {
    const folder = folderOf(path)
    if (where === 'anywhere') return !isRoot(folder) || !/^[A-Z][A-Z_-]*\.(?:md|txt)$/.test(nameOf(path)) || documents.test(nameOf(path))
    if (isRoot(folder)) return where === 'beside' && holds(folder, suffixes)
    let above = folder
    while (above !== '' && kind(above) !== 'folder') above = folderOf(above)
    const end = `x.${suffixOf(nameOf(path))}`
    if (!isRoot(above)) return isIn(inFolder(above, end))
    if (where !== 'settings' && holds(above, suffixes)) return true
    const [first = ''] = (above === '' ? folder : folder.slice(above.length + 1)).split('/')
    return where !== 'settings' && usualFolders.has(first) && isIn(inFolder(above, end))
  }

  /** Leaves out files that tools run unasked: a `vite.config.ts` alone does not make a folder of code. */
  function holds(folder: string, suffixes: ReadonlySet<string>): boolean {
    const isSuch = (name: string) => suffixes.has(suffixOf(name)) && !isRunUnasked(name) && kind(inFolder(folder, name)) === 'file'
    return namesIn(folder).some(isSuch)
  }

  /** Searches the folder and those below it, nearest first. */
  function search(folder: string, suffixes: ReadonlySet<string>): boolean {
    const queue = [folder]
    for (let at = 0; at < queue.length && at < foldersSearched; at++) {
      const next = queue[at] ?? ''
      if (holds(next, suffixes)) return true
      const below = namesIn(next).map((name) => inFolder(next, name))
      queue.push(...below.filter((path) => kind(path) === 'folder' && !isRunUnasked(`${path}/`)))
    }
    return false
  }

  function isOutput(path: string, isFolder = false): boolean {
    const by = ignored?.(path, isFolder)
    return by === 'folder' || (by === 'name' && (isFolder || (familyOf(path)?.where ?? 'anywhere') === 'anywhere'))
  }

  return { risk, isOutput }
}

function familyOf(path: string): Family | undefined {
  return families.get(suffixOf(nameOf(path)))
}

/** A document without a suffix counts as text. */
function suffixOf(name: string): string {
  const plain = spelt(name)
  return plain.includes('.') ? plain.slice(plain.lastIndexOf('.') + 1) : 'txt'
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(' '))
}

/** The paths that git ignores, and the answers that a person gave for good. */
export type AroundWrites = Pick<ReviewContext, 'ignored' | 'answered'>

type Writing = { readonly policy: Pick<Policy, 'workspace'>; readonly disk: Disk | undefined; readonly around: AroundWrites | undefined }

/** @returns the paths that a file tool may not write unasked even in `full` */
export function hiddenAmong(paths: readonly string[], { workspace }: Pick<Policy, 'workspace'>): readonly string[] {
  return paths.filter((path) => path.startsWith(`${workspace}/`) && isHiddenSetting(path.slice(workspace.length + 1)))
}

/**
 * Finds what a file tool may not write unasked, even where medium risks were approved in advance.
 * @param paths absolute. @returns why the call asks; the same paths ask when a command changes them
 */
export function reasonToAsk(paths: readonly string[], { policy: { workspace }, disk, around }: Writing): string | undefined {
  const placeOf = (path: string) => (path.startsWith('/') ? path : `${workspace}/${path}`)
  const state = (path: string) => disk?.state?.(placeOf(path))
  const judge = createPathJudge({
    kind: (path) => state(path)?.kind,
    names: (folder) => disk?.names?.(folder === '' ? workspace : placeOf(folder)),
    ignored: around?.ignored,
  })
  function why(path: string): string | undefined {
    if (around?.answered?.(path)) return
    if (isManifestOrLock(path)) return 'scripts, dependencies or tool settings of a package'
    const found = state(path)
    return judge.risk(path) ?? (found?.kind === 'file' && (found.mode & 0o111) !== 0 ? 'other content of an executable' : undefined)
  }
  for (const path of paths) {
    const relative = path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path
    const reason = why(relative)
    if (reason !== undefined) return `${JSON.stringify(relative)}: ${reason}`
  }
}
