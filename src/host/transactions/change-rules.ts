/** Loads the rules that look at change sets: those of the operator, and in a trusted folder those for its structure, `.braidclaw/structure.toml`. */

import { join } from 'node:path'
import { readConfigFile } from '../../config/text/read-toml-file.ts'
import { readToml } from '../../config/text/toml.ts'
import { createTrust } from '../../config/trust.ts'
import { createFactCache, type FactCache } from '../../discovery/structure/fact-cache.ts'
import { describeViolation, type Violation, worsened } from '../../discovery/structure/judge.ts'
import { createProject, type Project, type Tree } from '../../discovery/structure/project.ts'
import { parseStructure, type Rules } from '../../discovery/structure/rules.ts'
import { sha256 } from '../../kit/sha256.ts'
import { count } from '../../kit/text.ts'
import type { Change } from '../../runtime/changes.ts'
import type { RuleOnChanges } from '../../runtime/rules/rule-thread.ts'
import { type ChangeView, createChangeView } from '../../security/changes/change-view.ts'
import type { Look, Side } from '../../security/changes/review-context.ts'
import { rulesInForce } from '../setup/operator-rules.ts'
import type { RuleSetup } from '../setup/setup.ts'

/** Returns the path of the rules; `hasRules` looks for it, too. */
export function structureFile(workspace: string): string {
  return `${workspace}/.braidclaw/structure.toml`
}

/** Returns undefined without the file. Its problems begin with line and column. */
export function readStructure(workspace: string): Rules | undefined {
  const read = readConfigFile(structureFile(workspace))
  if (read.state === 'missing') return undefined
  if (read.state === 'text') return parseStructure(readToml(read.text))
  return { rules: [], blocks: new Map(), problems: [`${read.line ?? 1}:1: the file ${read.why}`] }
}

/** Leaves out the warnings about the rules of the operator, which were given when the run began. */
export function changeRulesInForce(setup: RuleSetup) {
  return { written: rulesInForce({ ...setup, log: () => {} }).written, structure: structureJudge(setup) }
}

type StructureJudge = (changes: readonly Change[], look: Look) => RuleOnChanges | undefined

/** Reads the rules once; with a mistake in them every change asks. Returns undefined where no rules hold. */
function structureJudge({ config, paths }: RuleSetup): StructureJudge | undefined {
  const workspace = config.workspaceDir
  const project = config.copyOf ?? workspace
  const structure = readStructure(project)
  if (structure === undefined) return undefined
  if (!createTrust(paths.trustedFolders).isTrusted(project)) return undefined
  const { rules, problems } = structure
  const [problem] = problems
  if (problem !== undefined) {
    const reason = `the rules for the structure of this project have ${count(problems.length, 'mistake')} (${structureFile(workspace)}:${problem}), so every change asks; see: braidclaw structure check`
    return () => ({ verdict: 'ask', rule: 'rule.structure', reason })
  }
  const cache = openFactCache(paths.home, workspace)
  return (changes, look) => {
    const view = createChangeView(changes, look)
    const [before, after] = [projectOf(workspace, view, 'before', cache), projectOf(workspace, view, 'after', cache)]
    const violations = worsened(rules, { before, after, changes })
    cache.save()
    return ruling(violations)
  }
}

/** Opens what is kept of the files of this workspace. */
export function openFactCache(home: string, workspace: string): FactCache {
  return createFactCache(join(home, 'run', 'structure', `${sha256(workspace).slice(0, 32)}.json`))
}

/** Returns the project as it is on one side of the changes. */
export function projectOf(root: string, view: ChangeView, side: Side, cache?: FactCache): Project {
  const tree: Tree = {
    root,
    kind: (path) => (path === '' ? 'folder' : view.kind(path, side)),
    mark: view.mark,
    target: (path) => view.target(path, side),
    text: (path, maxBytes) => view.text(path, side, maxBytes),
    names: (folder) => view.names(folder, side),
  }
  return createProject(tree, cache)
}

/** A veto goes before a question. */
function ruling(violations: readonly Violation[]): RuleOnChanges | undefined {
  const vetoes = violations.filter(({ rule }) => rule.verdict === 'veto')
  const [first, ...others] = vetoes.length > 0 ? vetoes : violations
  if (first === undefined) return undefined
  const more = others.length > 9 ? [`and ${count(others.length - 9, 'more violation')}`] : []
  const reason = [...[first, ...others.slice(0, 9)].map(describeViolation), ...more].join('; ')
  return { verdict: first.rule.verdict === 'veto' ? 'deny' : 'ask', rule: `rule.structure.${first.rule.name}`, reason }
}
