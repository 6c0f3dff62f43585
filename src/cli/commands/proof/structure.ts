/** Implements `structure check` and `structure explain`: the rules for the structure of a project, and what is known of one file. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { createTrust } from '../../../config/trust.ts'
import { describeViolation, filesOf, type Violation, violationsOf } from '../../../discovery/structure/judge.ts'
import type { Project } from '../../../discovery/structure/project.ts'
import type { Rules, StructureRule } from '../../../discovery/structure/rules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { projectOf, readStructure, structureFile } from '../../../host/transactions/change-rules.ts'
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
  if (structure.problems.length > 0)
    throw new CliExit(exitCodes.usage, structure.problems.map((each) => visible(`error: ${file}:${each}`)).join('\n'))
  if (!createTrust(setup.paths.trustedFolders).isTrusted(root))
    context.process.stderr.write(
      `note: changes are not judged by these rules: the folder is not trusted (braidclaw trust ${visible(root)})\n`,
    )
  const project = projectOf(root, createChangeView([], createLook({ workspace: root, upper: root, changes: [] })), 'before')
  return { ...structure, project, ...filesOf(project) }
}

export const check = command({
  flags,
  examples: [
    ['', 'each place that breaks a rule, as file:line'],
    ['--at ~/shop --json', 'one object for scripts'],
  ],
  exits: [[1, 'something breaks a rule']],
  run(context, { at, json = false }) {
    const { rules, project, files, isWhole } = open(context, at)
    const violations = violationsOf(rules, project, files)
    const warnings = [
      ...rules.flatMap((rule) => withoutFiles(rule, files)),
      ...(isWhole ? [] : [`only ${count(files.length, 'file')} were looked at; there are more`]),
    ]
    const print = (text: string) => context.process.stdout.write(`${text}\n`)
    if (json)
      print(
        JSON.stringify({
          ok: violations.length === 0,
          files: files.length,
          rules: rules.length,
          violations: violations.map(shown),
          warnings,
        }),
      )
    else {
      for (const each of violations) print(describeViolation(each))
      for (const warning of warnings) context.process.stderr.write(`warning: ${visible(warning)}\n`)
      print(
        `${count(files.length, 'file')}, ${count(rules.length, 'rule')}: ${violations.length === 0 ? 'all hold' : count(violations.length, 'violation')}`,
      )
    }
    if (violations.length > 0) throw new CliExit(exitCodes.error)
  },
})

function shown({ rule, path, line, says }: Violation) {
  return { rule: rule.name, verdict: rule.verdict, path, line, says, reason: rule.reason }
}

/** A pattern that matches nothing protects nothing. */
function withoutFiles({ name, patterns }: StructureRule, files: readonly string[]): readonly string[] {
  return patterns.flatMap(({ text, matches }) => {
    if (files.some(matches)) return []
    const folders = new Set(
      files.flatMap((path) =>
        path
          .split('/')
          .slice(0, -1)
          .map((_, at, all) => all.slice(0, at + 1).join('/')),
      ),
    )
    return [`rule "${name}": ${quote(text)} matches no file${didYouMean(text.replace(/\/?[^/]*[*{[].*$|\/$/, ''), [...folders])}`]
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
    const { rules, blocks, project, files } = open(context, at)
    const rule = rules.find(({ name }) => name === what)
    const path = what.replace(/^\.\//, '')
    if (rule === undefined && !files.includes(path))
      throw usageError(
        `${quote(what)} is neither a rule nor a file of the project${didYouMean(what, [...rules.map(({ name }) => name), ...files])}`,
      )
    const about = rule ? [rule] : rules.filter((one) => one.isAbout(path))
    const violations = violationsOf(about, project, files).filter((each) => rule !== undefined || each.path === path)
    const relations = rule ? undefined : relationsOf({ project, files, blocks, path })
    const facts = relations === undefined ? [] : [relations.toContext([path])]
    const listed = about.map(({ name, verdict, reason = '' }) => `rule ${name} (${verdict})${reason && `: ${reason}`}`)
    const numbers = rule ? [`it is about ${count(files.filter(rule.isAbout).length, 'file')}`] : []
    const lines = [...facts, ...listed, ...numbers, ...violations.map(describeViolation)].map((line) =>
      line.split('\n').map(visible).join('\n'),
    )
    const data = {
      relations: relations?.all() ?? [],
      rules: about.map(({ name, verdict, reason }) => ({ name, verdict, reason })),
      violations: violations.map(shown),
    }
    context.process.stdout.write(`${json ? JSON.stringify(data) : lines.join('\n')}\n`)
  },
})

type About = { readonly project: Project; readonly files: readonly string[]; readonly blocks: Rules['blocks']; readonly path: string }

/**
 * Returns what is known of one file: the blocks that it belongs to (its folder, and the named groups), itself and the files on the other end as
 * objects, its imports and those that lead to it as channels, a lever when only somebody outside can start it, and its loops.
 */
function relationsOf({ project, files, blocks, path }: About) {
  const node = (id: string, edgeType: string, parents: string[], description = id): RelationNode => ({
    id,
    parents,
    edgeType,
    context: { description },
    createdAt: 0,
  })
  const ends = files.flatMap((from) =>
    (project.facts(from)?.channels ?? []).flatMap((one) => (from === path || one.target === path ? [{ ...one, from }] : [])),
  )
  const folder = `${path.split('/').slice(0, -1).join('/')}/`
  const groups = [...blocks].flatMap(([name, matches]) => (matches(path) ? [name] : []))
  const others = [...new Set(ends.flatMap(({ from, target }) => [from, target]))].filter((one) => one !== path)
  const all: StructureRule = { name: 'loop', verdict: 'ask', types: true, claim: { type: 'cycles' }, isAbout: () => true, patterns: [] }
  const loops = violationsOf([all], project, [path])
  return createRelationStore({
    initialNodes: [
      ...[folder, ...groups].map((name) => node(`block ${name}`, 'block', [], name)),
      node(
        path,
        'object',
        [folder, ...groups].map((name) => `block ${name}`),
        `${path}, ${count(project.facts(path)?.lines ?? 0, 'line')}`,
      ),
      ...others.map((one) => node(one, 'object', [])),
      ...ends.map(({ from, target, line }, at) =>
        node(`channel ${at}`, 'channel', [...new Set([from, target])], `${from}:${line} imports ${target}`),
      ),
      ...(ends.some(({ from }) => from !== path)
        ? []
        : [node('lever', 'lever', [path], 'no file imports it, so it is started from outside')]),
      ...loops.map(({ says }, at) => node(`loop ${at}`, 'loop', [path], says)),
    ],
  })
}
