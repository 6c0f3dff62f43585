/** Reads the imports of Python, Go and Rust files, and finds the files that they lead to. docs/structure.md names what is not seen. */

import { dirname, join } from 'node:path'

/** The offset of an import in its text. */
type Named = { readonly specifier: string; readonly at: number }

/** Paths are relative to the project; `follow` returns the path without links. */
type Files = {
  isFile(path: string): boolean
  isFolder(path: string): boolean
  names(folder: string): readonly string[]
  text(path: string): string
}

type Language = {
  scan(text: string): readonly Named[]
  /** @returns a path in the project, or `package:NAME` */
  resolve(files: Files, from: string, specifier: string): string
}

const languages: { readonly [ending: string]: Language } = {
  py: { scan: scanPython, resolve: resolvePython },
  pyi: { scan: scanPython, resolve: resolvePython },
  go: { scan: scanGo, resolve: resolveGo },
  rs: { scan: scanRust, resolve: resolveRust },
}

export function languageOf(path: string): Language | undefined {
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase()
  return Object.hasOwn(languages, ending) ? languages[ending] : undefined
}

/** Puts spaces in place of comments and texts, so that every offset stays. */
function blank(text: string, tokens: RegExp): string {
  return text.replace(tokens, (found) => found.replace(/[^\n]/g, ' '))
}

/** One that has no end reaches to the end of the file. */
const pythonTexts = /#[^\n]*|("""|''')(?:\\[\s\S]|(?!\1)[^\\])*(?:\1|$)|(["'])(?:\\[\s\S]|(?!\2)[^\\\n])*\2?/g
const gap = String.raw`(?:[ \t\f]|\\\r?\n)`
const pythonImport = new RegExp(
  String.raw`(?:^|[;:])${gap}{0,99}(?:from${gap}+(\.[ \t.]*[\p{L}\p{N}_.]*|[\p{L}\p{N}_.]+)${gap}*import\b${gap}*(\([^)]*|(?:\\\r?\n|[^\n;])*)|import${gap}+((?:\\\r?\n|[^\n;])*))|(?:\bimport_module|\b__import__)\s*\(`,
  'gmu',
)

/** Names what `from a.b import c` imports `a.b:c`. */
function scanPython(text: string): readonly Named[] {
  return [...blank(text, pythonTexts).matchAll(pythonImport)].flatMap(({ 0: whole, 1: module, 2: members, 3: modules, index }) => {
    const at = index + whole.search(/[^\s;:]/)
    const list = (members ?? modules ?? '').split(',').map((one) => /^[\s(\\]*([\p{L}\p{N}_.*]+)/u.exec(one)?.[1] ?? '')
    if (module === undefined && modules === undefined) return [{ specifier: '', at }]
    const above = module?.replace(/\s/g, '')
    const names = list.filter((one) => one !== '')
    return names.map((name) => ({ specifier: above === undefined ? name : name === '*' ? above : `${above}:${name}`, at }))
  })
}

/** A module is searched in the project, in its `src`, and in the folder that holds the package of the file. */
function resolvePython({ isFile, isFolder }: Files, from: string, specifier: string): string {
  const [, dots = '', path = '', , member] = /^(\.*)([^:]*)(:(.*))?$/.exec(specifier) ?? []
  const steps = path.split('.').filter(Boolean)
  const above = (folder: string, count: number): string => (count <= 0 ? folder : above(join(folder, '..'), count - 1))
  let top = dirname(from)
  while (top !== '.' && isFile(join(top, '__init__.py'))) top = dirname(top)
  const roots = dots === '' ? [...new Set(['', 'src', top])] : [above(dirname(from), dots.length - 1)]
  const fileOf = (place: string) =>
    [`${place}.py`, `${place}.pyi`, join(place, '__init__.py'), join(place, '__init__.pyi')].find((one) => isFile(one))
  for (const root of roots) {
    const place = join(root, ...steps)
    const found = (member && fileOf(join(place, member))) || fileOf(place)
    if (found !== undefined) return found
  }
  const root = roots.find((root) => dots !== '' || isFolder(join(root, steps[0] ?? '')))
  if (root === undefined) return `package:${steps[0]}`
  const place = join(root, ...steps)
  return isFolder(place) && member ? join(place, `${member}.py`) : `${place}.py`
}

const goToken =
  /\s+|;|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|package\s+[\p{L}\p{N}_]+|import\b|[()]|(?:[\p{L}\p{N}_]+|\.)(?=\s*["`])|"([^"\\\n]*)"|`([^`\n]*)`/guy

/** Reads the head of the file up to its first declaration, behind which Go allows no imports. */
function scanGo(text: string): readonly Named[] {
  return [...text.matchAll(goToken)].flatMap(({ 1: quoted, 2: raw, index: at }) => {
    const specifier = quoted ?? raw
    return specifier === undefined ? [] : { specifier, at }
  })
}

/** An import of the module of the nearest go.mod leads to the first file of the folder. */
function resolveGo({ isFile, names, text }: Files, from: string, specifier: string): string {
  const home = foldersAbove(from).find((folder) => isFile(join(folder, 'go.mod')))
  const module = home === undefined ? undefined : /^\s*module\s+"?([^\s"]+)/m.exec(text(join(home, 'go.mod')))?.[1]
  if (home === undefined || module === undefined || !`${specifier}/`.startsWith(`${module}/`)) return `package:${specifier}`
  const folder = join(home, specifier.slice(module.length + 1))
  const files = names(folder).filter((name) => name.endsWith('.go') && !name.endsWith('_test.go'))
  return join(folder, files.toSorted()[0] ?? `${specifier.slice(specifier.lastIndexOf('/') + 1)}.go`)
}

function foldersAbove(path: string): readonly string[] {
  const folder = dirname(path)
  return folder === '.' ? [''] : [folder, ...foldersAbove(folder)]
}

const rustComment = String.raw`\/\*(?:(?!\/\*|\*\/)[\s\S])*\*\/`
/** Comments may stand in comments, here three deep. */
const rustComments = String.raw`\/\*(?:\/\*(?:${rustComment}|(?!\/\*|\*\/)[\s\S])*\*\/|(?!\/\*|\*\/)[\s\S])*(?:\*\/|$)`
const rustTexts = new RegExp(
  String.raw`\/\/[^\n]*|${rustComments}|\bb?r(#*)"[\s\S]*?(?:"\1|$)|"(?:\\[\s\S]|[^"\\])*(?:"|$)|'(?:\\[^\n][^'\n]{0,8}|[^\\'\n])'`,
  'g',
)
const rustToken = /\bmod\s+(\w+)\s*([;{])|\buse\s+([^;]*)(?:;|$)|\bextern\s+crate\s+(\w+)|([{}])/g

const mostNested = 50

/** Names a module of the file `self::NAME`. A `use` in a module within the file is named as seen from the file. */
function scanRust(text: string): readonly Named[] {
  const [found, open]: [Named[], (string | undefined)[]] = [[], []]
  const within = () => open.slice(0, mostNested).filter((name) => name !== undefined)
  for (const { 1: module, 2: end, 3: use, 4: crate, 5: brace, index: at } of blank(text, rustTexts).matchAll(rustToken)) {
    if (end === '{' || brace === '{') open.push(module)
    else if (brace === '}') open.pop()
    else if (end === ';') found.push({ specifier: ['self', ...within(), module].join('::'), at })
    else if (crate !== undefined) found.push({ specifier: crate, at })
    else for (const path of use === undefined ? [] : pathsOf(use)) found.push({ specifier: seenFromFile(path, within()), at })
  }
  return found.filter(({ specifier }) => specifier !== '')
}

/** Returns the paths of `a::{b, c::{self, d}}`. */
function pathsOf(use: string): readonly string[] {
  const [paths, stems]: [string[], string[]] = [[], ['']]
  for (const [, word = '', mark = ''] of use.replace(/\bas\s+\w+/g, '').matchAll(/([^{},]*)([{},]|$)/g)) {
    const path = (stems.at(-1) ?? '') + word.replace(/\s|^\s*::/g, '')
    if (mark === '{' && stems.length > mostNested) break
    if (mark === '{') stems.push(path)
    else if (word.trim() !== '') paths.push(path.replace(/::(?:self|\*)$/, ''))
    if (mark === '}') stems.pop()
  }
  return paths
}

/** Returns '' for a path that stays within the file. */
function seenFromFile(path: string, within: readonly string[]): string {
  const [, supers = '', rest = ''] = /^(?:self(?:::|$))?((?:super(?:::|$))*)(.*)$/.exec(path) ?? []
  const ups = supers.split('super').length - 1
  if (within.length === 0) return path
  if (ups > within.length) return `${'super::'.repeat(ups - within.length)}${rest}`.replace(/::$/, '')
  return ups > 0 || path.startsWith('self') ? '' : path
}

/** Goes from the crate (the `src` beside the nearest Cargo.toml) or the module of the file as deep as files lead. */
function resolveRust({ isFile }: Files, from: string, specifier: string): string {
  const home = foldersAbove(from).find((folder) => isFile(join(folder, 'Cargo.toml'))) ?? ''
  const root = ['lib.rs', 'main.rs'].map((name) => join(home, 'src', name)).find((path) => isFile(path)) ?? join(home, 'src', 'lib.rs')
  const fileOf = (place: string) => [`${place}.rs`, join(place, 'mod.rs')].find((path) => isFile(path))
  const isTop = /(?:^|\/)(?:mod|lib|main)\.rs$/.test(from)
  const [first = '', ...rest] = specifier.split('::')
  const supers = specifier.split('::').filter((step) => step === 'super').length
  let folder = first === 'crate' ? dirname(root) : isTop ? dirname(from) : from.replace(/\.rs$/, '')
  for (let up = 0; up < supers; up++) folder = dirname(folder)
  const isOwn = ['crate', 'self', 'super'].includes(first)
  if (!isOwn && fileOf(join(folder, first)) === undefined) return `package:${first}`
  const steps = (isOwn ? rest : [first, ...rest]).filter((step) => step !== 'super')
  let file = folder === dirname(root) ? root : (fileOf(folder) ?? from)
  for (const [at, step] of steps.entries()) {
    const deeper = fileOf(join(folder, step))
    // The last name may be one of what stands in the module itself.
    const isModule = at === 0 && (steps.length > 1 ? /^[a-z]/.test(step) : first === 'self')
    if (deeper === undefined) return isModule ? join(folder, `${step}.rs`) : file
    file = deeper
    folder = join(folder, step)
  }
  return file
}
