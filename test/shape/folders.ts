/** Checks that folders depend on each other in one direction, stay small and do not nest deeply. The lists of present exceptions may only shrink. */

import { isTest, type Law, type Module } from './module.ts'

/** Pairs of entries of one folder that import each other, at least one of them a folder; each pair in order of its names. */
const MUTUAL: readonly string[] = [
  'src/host: api.ts ⇄ toolset',
  'src/host: open ⇄ run',
  'src/host: setup ⇄ toolset',
  'src/memory: agent-files ⇄ conversations',
  'src/security/command: flow ⇄ tools',
]

const MOST = 14
/** Folders with more entries, and their present limits. */
const CROWDED: { readonly [folder: string]: number } = {
  'src/channels/terminal': 16,
  'src/memory': 22,
  'src/runtime': 21,
  'src/sandbox': 20,
  'src/security': 16,
}

const MAX_FOLDERS = 4

/** Counts the folders between `src` and the file. */
export const pathsAreShort: Law = (modules) =>
  modules
    .map(({ path }) => ({ path, folders: path.split('/').length - 2 }))
    .filter(({ path, folders }) => path.startsWith('src/') && folders > MAX_FOLDERS)
    .map(({ path, folders }) => ({
      file: path,
      line: 1,
      message: `${folders} folders below src, at most ${MAX_FOLDERS}; move the innermost folder up`,
    }))

/**
 * Folders to which docs/extending.md and docs/channels.md add, each with the list that imports what was added. An entry that its list imports is
 * one of many of a kind and does not count; all others do.
 */
const GROWING: { readonly [folder: string]: string } = {
  'src/channels': 'src/channels/list.ts',
  'src/providers': 'src/providers/list.ts',
  'src/runtime/behaviours': 'src/runtime/program.ts',
  'src/tools/builtin': 'src/tools/list.ts',
}

/** Returns the violations that are not listed, and the listed exceptions that no longer occur. */
export function mutualFolders(modules: readonly Module[], debts: readonly string[] = MUTUAL): string[] {
  const edges = new Set(sources(modules).flatMap((module) => module.imports.flatMap(({ target }) => edgeOf(module.path, target))))
  const found = [...edges].flatMap((edge) => {
    const [folder = '', from = '', to = ''] = edge.split('\n')
    const isPair = from < to && edges.has([folder, to, from].join('\n')) && !(from.endsWith('.ts') && to.endsWith('.ts'))
    return isPair ? [`${folder}: ${from} ⇄ ${to}`] : []
  })
  return differences(found, debts)
}

/** `src` itself is the architecture, which has a separate law. */
export function crowdedFolders(modules: readonly Module[], debts: { readonly [folder: string]: number } = CROWDED): string[] {
  const entries = new Map<string, Set<string>>()
  for (const { path } of sources(modules)) {
    const parts = path.split('/')
    for (let depth = 2; depth < parts.length; depth += 1) {
      const folder = parts.slice(0, depth).join('/')
      entries.set(folder, (entries.get(folder) ?? new Set()).add(parts[depth] ?? ''))
    }
  }
  for (const [folder, list] of Object.entries(GROWING))
    for (const { target, typeOnly } of modules.find(({ path }) => path === list)?.imports ?? [])
      if (!typeOnly && target?.startsWith(`${folder}/`)) entries.get(folder)?.delete(target.slice(folder.length + 1).split('/')[0] ?? '')
  const found = [...entries].filter(([, names]) => names.size > MOST).map(([folder, names]) => `${folder}: ${names.size} entries`)
  return differences(
    found,
    Object.entries(debts).map(([folder, size]) => `${folder}: ${size} entries`),
  )
}

function sources(modules: readonly Module[]): readonly Module[] {
  return modules.filter((module) => module.path.startsWith('src/') && !isTest(module) && !/(^|[./])fixture\.ts$/.test(module.path))
}

/** Between the entries of the lowest folder that holds both. */
function edgeOf(from: string, to: string | undefined): string[] {
  if (to === undefined || !to.startsWith('src/')) return []
  const [a, b] = [from.split('/'), to.split('/')]
  const at = a.findIndex((part, index) => part !== b[index])
  return at < 1 ? [] : [[a.slice(0, at).join('/'), a[at], b[at]].join('\n')]
}

function differences(found: readonly string[], debts: readonly string[]): string[] {
  return [
    ...found.filter((one) => !debts.includes(one)),
    ...debts.filter((one) => !found.includes(one)).map((one) => `no debt any more, take it off the list: ${one}`),
  ]
}
