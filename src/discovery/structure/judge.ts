/** Finds what breaks the rules for a structure, in a whole project or in what a change set makes worse. */

import { join } from 'node:path'
import { memo } from '../../kit/lazy.ts'
import { visible } from '../../kit/text.ts'
import type { Change } from '../../runtime/changes.ts'
import type { Found, IsNew } from './find.ts'
import { type Project, steersImports, type Tree } from './project.ts'
import type { StructureRule } from './rules.ts'

export type Violation = Found & { readonly rule: StructureRule }

const mostFiles = 100_000

/** Lists the files of a project but those in `node_modules` and in folders that begin with a dot. @returns `isWhole` false: there are more */
export function filesOf(tree: Tree): { readonly files: readonly string[]; readonly isWhole: boolean } {
  const [files, folders]: [string[], string[]] = [[], ['']]
  for (let folder = folders.pop(); folder !== undefined && files.length <= mostFiles; folder = folders.pop())
    for (const name of tree.names(folder) ?? []) {
      const path = join(folder, name)
      const kind = tree.kind(path)
      if (kind === 'file') files.push(path)
      if (kind === 'folder' && isOwn(`${path}/`)) folders.push(path)
    }
  return { files: files.slice(0, mostFiles).sort(), isWhole: files.length <= mostFiles }
}

/** Leaves out packages, folders whose names begin with a dot, and a git directory outside. */
function isOwn(path: string): boolean {
  return !/^\/|(?:^|\/)(?:\.[^/]*|node_modules)\//.test(path)
}

/** Judges these files, and their folders. */
export function violationsOf(
  rules: readonly StructureRule[],
  project: Project,
  files: readonly string[],
  isNew: IsNew = () => true,
): readonly Violation[] {
  return rules.flatMap((rule) => rule.find(project, files.filter(rule.isAbout), isNew).map((found) => ({ ...found, rule })))
}

type Changing = { readonly before: Project; readonly after: Project; readonly changes: readonly Change[] }

/** Returns what a change set makes worse: new violations, and those that grew. */
export function worsened(rules: readonly StructureRule[], { before, after, changes: given }: Changing): readonly Violation[] {
  const changes = given.filter(({ path }) => isOwn(path))
  const steers = changes.some(({ path, before, after }) => steersImports.test(path) || before?.kind === 'link' || after?.kind === 'link')
  const deleted = changes.flatMap((change) => (change.after ? [] : change.path))
  const named = steers ? filesOf(after).files : new Set([...changes.map(({ path }) => path), ...filesAbove(after, deleted)])
  const files = [...named]
  const known = memo((path) => new Set(before.facts(path)?.channels.map(({ target }) => target)))
  const keyOf = ({ rule, path, about = '' }: Violation) => `${rule.name} ${path} ${about}`
  // A cycle counts when a new import closes it, so those of before need not be found.
  const had = new Map(violationsOf(rules, before, files, () => false).map((one) => [keyOf(one), one.amount ?? 1]))
  const found = violationsOf(rules, after, files, (from, target) => !known(from).has(target))
  return found.filter((one) => (one.amount ?? 1) > (had.get(keyOf(one)) ?? 0))
}

/** Returns the files in the folders above deleted ones, which may have been what stands beside them. */
function filesAbove(tree: Tree, deleted: readonly string[]): readonly string[] {
  const folders = new Set(deleted.flatMap((path) => path.split('/').map((_, at, all) => all.slice(0, at).join('/'))))
  const inside = [...folders].flatMap((folder) => (tree.names(folder) ?? []).map((name) => join(folder, name)))
  return inside.filter((path) => tree.kind(path) === 'file')
}

/** Says where, what, and by which rule. */
export function describeViolation({ rule, path, line, says }: Violation): string {
  const reason = rule.reason === undefined ? '' : `: ${rule.reason}`
  return visible(`${path}${line === undefined ? '' : `:${line}`} ${says} (rule "${rule.name}"${reason})`)
}
