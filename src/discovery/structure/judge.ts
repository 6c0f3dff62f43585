/** Finds what breaks the rules of a structure, in a whole project or in what a change set makes worse. */

import { basename, dirname, join } from 'node:path'
import { memo } from '../../kit/lazy.ts'
import { count, quote, visible } from '../../kit/text.ts'
import type { Change } from '../../runtime/changes.ts'
import { type Channel, type Project, steersImports, type Tree } from './project.ts'
import type { StructureRule } from './rules.ts'

/** `says` completes "path:line "; `key` stays the same while the line moves, and a greater `amount` is worse. */
export type Violation = {
  readonly rule: StructureRule
  readonly path: string
  readonly line?: number
  readonly says: string
  readonly key: string
  readonly amount: number
}

const mostFiles = 100_000

/** Lists the files of a project but those in `node_modules` and in folders that begin with a dot. @returns `isWhole` false: there are more */
export function filesOf(tree: Tree): { readonly files: readonly string[]; readonly isWhole: boolean } {
  const [files, folders]: [string[], string[]] = [[], ['']]
  for (let folder = folders.pop(); folder !== undefined && files.length < mostFiles; folder = folders.pop())
    for (const name of tree.names(folder) ?? []) {
      const path = folder === '' ? name : `${folder}/${name}`
      const kind = tree.kind(path)
      if (kind === 'file') files.push(path)
      if (kind === 'folder' && isOwn(`${path}/`)) folders.push(path)
    }
  return { files: files.slice(0, mostFiles).sort(), isWhole: files.length < mostFiles && folders.length === 0 }
}

/** Judges these files, and their folders. @param isNew tells of an import whether it can close a cycle; absent: each one */
export function violationsOf(
  rules: readonly StructureRule[],
  project: Project,
  files: readonly string[],
  isNew?: IsNew,
): readonly Violation[] {
  return rules.flatMap((rule) => {
    const own = files.filter(rule.isAbout)
    if (rule.claim.type === 'cycles') return cycles(rule, project, own, isNew)
    if (rule.claim.type === 'files') return crowded(rule, rule.claim.most, project, own)
    return own.flatMap((path) => violationsIn(rule, project, path))
  })
}

type IsNew = (from: string, target: string) => boolean

type Changing = { readonly before: Project; readonly after: Project; readonly changes: readonly Change[] }

/** Returns what a change set makes worse: new violations, and those that grew. */
export function worsened(rules: readonly StructureRule[], { before, after, changes }: Changing): readonly Violation[] {
  const steers = changes.some(({ path, before, after }) => steersImports.test(path) || before?.kind === 'link' || after?.kind === 'link')
  const deleted = changes.flatMap((change) => (change.after ? [] : change.path))
  const named = steers ? filesOf(after).files : new Set([...changes.map(({ path }) => path), ...filesAbove(after, deleted)])
  const own = [...named].filter((path) => !path.startsWith('/') && isOwn(path))
  const known = memo((path) => new Set(before.facts(path)?.channels.map(({ target }) => target)))
  const local = rules.filter(({ claim }) => claim.type !== 'cycles')
  const had = new Map(violationsOf(local, before, own).map(({ key, amount }) => [key, amount]))
  const found = violationsOf(rules, after, own, (from, target) => !known(from).has(target))
  return found.filter(({ key, amount }) => amount > (had.get(key) ?? 0))
}

/** Returns the files in the folders above deleted ones, which may have been what stands beside them. */
function filesAbove(tree: Tree, deleted: readonly string[]): readonly string[] {
  const folders = new Set(deleted.flatMap((path) => path.split('/').map((_, at, all) => all.slice(0, at).join('/'))))
  const inside = [...folders].flatMap((folder) => (tree.names(folder) ?? []).map((name) => join(folder, name)))
  return inside.filter((path) => tree.kind(path) === 'file')
}

/** Leaves out packages, and folders whose names begin with a dot. */
function isOwn(path: string): boolean {
  return !/(?:^|\/)(?:\.[^/]*|node_modules)\//.test(path)
}

/** Says where, what, and by which rule. */
export function describeViolation({ rule, path, line, says }: Violation): string {
  const reason = rule.reason === undefined ? '' : `: ${rule.reason}`
  return visible(`${path}${line === undefined ? '' : `:${line}`} ${says} (rule "${rule.name}"${reason})`)
}

function violationsIn(rule: StructureRule, project: Project, path: string): readonly Violation[] {
  const { claim } = rule
  const at = (says: string, more: Partial<Violation> = {}) => [{ rule, path, says, key: `${rule.name} ${path}`, amount: 1, ...more }]
  if (claim.type === 'beside') {
    const wanted = claim.names.map((name) => join(dirname(path), name.replaceAll('{name}', nameOf(path))))
    const isOne = claim.names.some((name) => new Bun.Glob(`**/${name.replaceAll('{name}', '*')}`).match(path))
    const isFine = isOne || project.kind(path) !== 'file' || wanted.some((one) => project.kind(one) !== undefined)
    return isFine ? [] : at(`has no ${wanted.map(quote).join(' or ')} beside it`)
  }
  const facts = project.facts(path)
  if (facts === undefined) return []
  const { lines, channels, problem } = facts
  if (claim.type === 'lines') return lines > claim.most ? at(`has ${count(lines, 'line')}, at most ${claim.most}`, { amount: lines }) : []
  if (claim.type !== 'imports') return []
  if (problem !== undefined) return at(problem, { key: `${rule.name} ${path} unread` })
  return channels.flatMap((channel) => {
    const { target, typeOnly, line } = channel
    if ((typeOnly && !rule.types) || !claim.forbids(path, target)) return []
    return at(`imports ${importText(channel)}, but ${claim.says}`, { line, key: `${rule.name} ${path} ${target}` })
  })
}

function importText({ specifier, target }: Channel): string {
  if (specifier === '') return 'a name that is known only at run time'
  return target.startsWith('package:') ? quote(specifier) : `${quote(specifier)} (${target})`
}

function nameOf(path: string): string {
  return basename(path).replace(/(?<=.)\.[^.]*$/, '')
}

/** Counts the files of each folder that the rule is about. */
function crowded(rule: StructureRule, most: number, project: Project, files: readonly string[]): readonly Violation[] {
  return [...new Set(files.map((path) => dirname(path)))].flatMap((path) => {
    const inside = (project.names(path === '.' ? '' : path) ?? []).map((name) => join(path, name))
    const amount = inside.filter((one) => rule.isAbout(one) && project.kind(one) === 'file').length
    return amount > most ? { rule, path, says: `has ${count(amount, 'file')}, at most ${most}`, key: `${rule.name} ${path}`, amount } : []
  })
}

/** Finds one violation for each group of files that import each other in a circle and hold a new import. */
function cycles(rule: StructureRule, project: Project, starts: readonly string[], isNew: IsNew = () => true): readonly Violation[] {
  const channels = memo((path) =>
    (project.facts(path)?.channels ?? []).filter(
      ({ target, typeOnly }) => (rule.types || !typeOnly) && rule.isAbout(target) && project.kind(target) === 'file',
    ),
  )
  const suspects = starts.filter((path) => channels(path).some(({ target }) => isNew(path, target)))
  const groups = groupsOf(suspects, (path) => channels(path).map(({ target }) => target))
  const seen = new Set<number>()
  return suspects.flatMap((path) => {
    const own = groups.get(path)
    const channel = channels(path).find(({ target }) => groups.get(target) === own && isNew(path, target))
    if (own === undefined || channel === undefined || seen.has(own)) return []
    seen.add(own)
    const back = shortest(channel.target, path, (at) => channels(at).flatMap(({ target }) => (groups.get(target) === own ? target : [])))
    const shown = back.length > 12 ? [...back.slice(0, 6), `… ${back.length - 11} more …`, ...back.slice(-5)] : back
    const says = `closes a cycle of imports: ${[path, ...shown].join(' → ')}`
    return { rule, path, line: channel.line, says, key: `${rule.name} ${path} ${channel.target}`, amount: 1 }
  })
}

/** Numbers the files: two have the same number when each reaches the other (Tarjan's algorithm, without recursion). */
function groupsOf(starts: readonly string[], next: (path: string) => readonly string[]): ReadonlyMap<string, number> {
  const [low, groups, open] = [new Map<string, number>(), new Map<string, number>(), [] as string[]]
  const trail: { readonly path: string; readonly number: number; readonly rest: Iterator<string> }[] = []
  const visit = (path: string) => {
    if (low.has(path)) return
    trail.push({ path, number: low.size, rest: next(path)[Symbol.iterator]() })
    low.set(path, low.size)
    open.push(path)
  }
  const lower = (path: string | undefined, other: string) => {
    if (path !== undefined && !groups.has(other)) low.set(path, Math.min(low.get(path) ?? 0, low.get(other) ?? 0))
  }
  for (const start of starts) {
    visit(start)
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const { done, value } = top.rest.next()
      if (!done) {
        visit(value)
        lower(top.path, value)
        continue
      }
      trail.pop()
      lower(trail.at(-1)?.path, top.path)
      if (low.get(top.path) === top.number) for (const path of open.splice(open.lastIndexOf(top.path))) groups.set(path, top.number)
    }
  }
  return groups
}

/** Returns the files on a shortest way. */
function shortest(from: string, to: string, next: (path: string) => readonly string[]): readonly string[] {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]])
  for (const at of cameFrom.keys()) for (const target of next(at)) if (!cameFrom.has(target)) cameFrom.set(target, at)
  const steps: string[] = []
  for (let at: string | undefined = to; at !== undefined; at = cameFrom.get(at)) steps.unshift(at)
  return steps
}
