/** Implements `structure check` and `structure explain`: the rules for the structure of a project, and what is known of one file. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { createTrust } from '../../../config/trust.ts'
import { findCycles } from '../../../discovery/structure/find.ts'
import { describeViolation, filesOf, type Violation, violationsOf } from '../../../discovery/structure/judge.ts'
import type { StructureRule } from '../../../discovery/structure/rules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { openFactCache, projectOf, readStructure, structureFile } from '../../../host/transactions/change-rules.ts'
import { count, didYouMean, quote, visible } from '../../../kit/text.ts'
import { createRelationStore, type RelationNode } from '../../../library/relations.ts'
import { createChangeView } from '../../../security/changes/change-view.ts'
import { createLook } from '../../../workspace/changes/look.ts'
import { command, type Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'

const flags = {
  at: { type: 'text', setting: 'workspace_dir', about: 'The folder of the project (without a config file: this one)' },
  ...jsonFlag,
} as const satisfies Flags

/** @throws CliExit `usage` that names every mistake of the rules */
function open(context: CliContext, at: string | undefined) {
  const setup = loadSetup(context, { workspace: at })
  const root = workspaceOf(setup)
  const file = structureFile(root)
  const structure = readStructure(root)
  if (structure === undefined) throw usageError(`${file} does not exist; docs/structure.md shows such rules`)
  const problems = structure.problems.map((each) => visible(`error: ${file}:${each}`))
  if (problems.length > 0) throw new CliExit(exitCodes.usage, problems.join('\n'))
  if (!createTrust(setup.paths.trustedFolders).isTrusted(root))
    warn(context, `note: changes are not judged by these rules: the folder is not trusted (braidclaw trust ${root})`)
  const cache = openFactCache(setup.paths.home, root)
  const project = projectOf(root, createChangeView([], createLook({ workspace: root, upper: root, changes: [] })), 'before', cache)
  return { ...structure, project, cache, ...filesOf(project) }
}

function warn({ process: { stderr } }: CliContext, text: string): void {
  stderr.write(`${visible(text)}\n`)
}

export const check = command({
  flags,
  examples: [
    ['', 'each place that breaks a rule, as file:line'],
    ['--at ~/shop --json', 'one object for scripts'],
  ],
  exits: [[1, 'something breaks a rule']],
  run(context, { at, json = false }) {
    const { rules, project, cache, files, isWhole } = open(context, at)
    const violations = violationsOf(rules, project, files)
    cache.save()
    const unread = isWhole ? [] : [`only the first ${count(files.length, 'file')} were looked at`]
    const warnings = [...rules.flatMap((rule) => idlePatterns(rule, files)), ...unread]
    const verdict = violations.length === 0 ? 'all hold' : count(violations.length, 'violation')
    const summary = `${count(files.length, 'file')}, ${count(rules.length, 'rule')}: ${verdict}`
    const data = { ok: violations.length === 0, files: files.length, rules: rules.length, violations: violations.map(shown), warnings }
    if (!json) for (const warning of warnings) warn(context, `warning: ${warning}`)
    const lines = json ? [JSON.stringify(data)] : [...violations.map(describeViolation), summary]
    context.process.stdout.write(`${lines.join('\n')}\n`)
    if (violations.length > 0) throw new CliExit(exitCodes.error)
  },
})

function shown({ rule, path, line, says }: Violation) {
  return { rule: rule.name, verdict: rule.verdict, path, line, says, reason: rule.reason }
}

/** A pattern that matches nothing protects nothing. */
function idlePatterns({ name, patterns }: StructureRule, files: readonly string[]): readonly string[] {
  return patterns.flatMap(({ text, matches }) => {
    if (files.some(matches)) return []
    const folders = new Set(files.flatMap((path) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index))))
    return `rule "${name}": ${quote(text)} matches no file${didYouMean(text.replace(/\/?[^/]*[*{[].*$|\/$/, ''), [...folders])}`
  })
}

export const explain = command({
  flags,
  args: { what: { type: 'text', about: 'The name of a rule, or the path of a file in the project' } },
  examples: [
    ['ui-without-database', 'what the rule says, and what breaks it'],
    ['src/ui/cart.ts', 'what the file imports, who imports it, and the rules about it'],
  ],
  run(context, { at, json = false }, { what }) {
    const known = open(context, at)
    const { rules, project, files } = known
    const path = what.replace(/^\.\//, '')
    const rule = rules.find(({ name }) => name === what)
    const names = [...rules.map(({ name }) => name), ...files]
    if (!rule && !files.includes(path)) throw usageError(`${quote(what)} is neither a rule nor a file here${didYouMean(what, names)}`)
    const about = rule ? [rule] : rules.filter((one) => one.isAbout(path))
    const violations = violationsOf(about, project, files).filter((each) => rule || each.path === path)
    const relations = createRelationStore({ initialNodes: rule ? [] : relationsOf(known, path) })
    const listed = about.map((one) => ({
      name: one.name,
      verdict: one.verdict,
      files: files.filter(one.isAbout).length,
      reason: one.reason,
    }))
    const facts = relations.toContext([path]).split('\n').filter(Boolean).map(visible)
    const ruled = listed.map(({ name, verdict, files, reason }) =>
      visible(`rule ${name} (${verdict}, ${count(files, 'file')})${reason ? `: ${reason}` : ''}`),
    )
    const data = { relations: relations.all(), rules: listed, violations: violations.map(shown) }
    const lines = json ? [JSON.stringify(data)] : [...facts, ...ruled, ...violations.map(describeViolation)]
    context.process.stdout.write(`${lines.join('\n')}\n`)
  },
})

/**
 * Returns what is known of one file: the blocks that it belongs to (its folder, and the named groups), itself and the files on the other end as
 * objects, its imports and those that lead to it as channels, a lever when only somebody outside can start it, and its loops.
 */
function relationsOf({ project, files, blocks }: ReturnType<typeof open>, path: string): RelationNode[] {
  const all = files.flatMap((from) => (project.facts(from)?.channels ?? []).map((channel) => ({ ...channel, from })))
  const ends = all.filter(({ from, target }) => from === path || target === path)
  const others = new Set(ends.flatMap(({ from, target }) => [from, target]).filter((one) => one !== path))
  const groups = [...blocks].flatMap(([name, matches]) => (matches(path) ? [name] : []))
  const own = [path.slice(0, path.lastIndexOf('/') + 1) || './', ...groups].map((name) => `block ${name}`)
  const loops = findCycles(() => true, true)(project, [path], () => true)
  const isStarted = ends.every(({ from }) => from === path)
  const rows: readonly (readonly [id: string, edgeType: string, description: string, parents: readonly string[]])[] = [
    ...own.map((id) => [id, 'block', id.slice('block '.length), []] as const),
    [path, 'object', `${path}, ${count(project.facts(path)?.lines ?? 0, 'line')}`, own],
    ...[...others].map((id) => [id, 'object', id, []] as const),
    ...ends.map(({ from, target, line }, at) => [`channel ${at}`, 'channel', `${from}:${line} imports ${target}`, [from, target]] as const),
    ...(isStarted ? [['lever', 'lever', 'no file imports it, so it is started from outside', [path]] as const] : []),
    ...loops.map(({ says }, at) => [`loop ${at}`, 'loop', says, [path]] as const),
  ]
  return rows.map(([id, edgeType, description, parents]) => ({
    id,
    parents: [...parents],
    edgeType,
    context: { description },
    createdAt: 0,
  }))
}
