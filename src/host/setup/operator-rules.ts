/**
 * Loads the operator's rules, from `~/.braidclaw/rules/*.json` and, in a trusted folder, from `<workspace>/.braidclaw/rules/*.json`, or those of
 * one file; an invalid rule ends the command.
 */

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode, explainErrno, readConfigFile } from '../../config/text/read-toml-file.ts'
import { createTrust } from '../../config/trust.ts'
import { realOf } from '../../kit/proc.ts'
import type { Places } from '../../runtime/rules/condition.ts'
import { lintRules } from '../../runtime/rules/lint.ts'
import { parseRules, type Rule, repeated } from '../../runtime/rules/parse-rules.ts'
import { type JournalledRules, journalRules, type RuleThread, ruleThread } from '../../runtime/rules/rule-thread.ts'
import { quoteText } from '../../security/command/syntax/quote.ts'
import { isToolName } from '../../tools/executable/description.ts'
import { toolKinds } from '../../tools/list.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import type { RuleSetup } from './setup.ts'

/** Returns the rules for runs in this workspace, and those of the caller as JSON. @throws FailureError `usage` that names every problem. */
export function rulesInForce(setup: RuleSetup): LoadedRules {
  const { config, paths, context, log, ownRules } = setup
  const workspace = config.workspaceDir
  const project = config.copyOf ?? workspace
  const trusted = createTrust(paths.trustedFolders).isTrusted(project)
  const loaded = loadRules({ home: paths.home, userHome: context.env.HOME || '/', workspace, project, trusted, own: ownRules })
  for (const notice of loaded.notices) log('warn', notice)
  understood(loaded)
  checkTools(setup, loaded.written)
  return loaded
}

/** `file` may be relative to the current folder. @throws FailureError `usage` that names every problem. */
export function rulesOfFile(setup: Setup, file: string) {
  const path = file.startsWith('/') ? file : `${setup.context.cwd}/${file}`
  const { rules } = understood(readRules(path, placesOf(setup)))
  checkTools(setup, rules)
  return rules
}

/**
 * A rule that can never apply protects nothing: a certain mistake ends the command, a likely one causes a warning. @throws FailureError
 * `usage`
 */
function checkTools(setup: RuleSetup, rules: readonly Rule[]): void {
  const known = { builtIn: toolKinds, own: setup.config.tools.executables, isToolName }
  const found = lintRules({ rules, known, places: placesOf(setup) })
  for (const warning of found.warnings) setup.log('warn', warning)
  understood(found)
}

function placesOf({ config, context }: RuleSetup): Places {
  return { workspace: config.workspaceDir, home: context.env.HOME || '/' }
}

function understood<T extends { readonly problems: readonly string[] }>(read: T): T {
  if (read.problems.length > 0) throw new FailureError('usage', read.problems)
  return read
}

export type RulesInput = {
  /** `~/.braidclaw`. */
  readonly home: string
  /** The folder that `~` means in a rule. */
  readonly userHome: string
  readonly workspace: string
  /** The folder with the project's own rules; default: the workspace. */
  readonly project?: string
  readonly trusted: boolean
  /** Rules of the calling program. */
  readonly own?: readonly unknown[]
}

export type LoadedRules = {
  readonly rules: readonly RuleThread[]
  /** The rules as the files state them. */
  readonly written: readonly Rule[]
  /** The rules to write into `run.start`; absent when there are none. */
  readonly journal?: JournalledRules
  readonly notices: readonly string[]
  /** With any problem no run may start, because an invalid rule is not enforced. */
  readonly problems: readonly string[]
}

type ParsedRules = Pick<LoadedRules, 'notices' | 'problems'> & { readonly rules: readonly Rule[] }

/** Never throws for file system errors. Without a rules folder it costs one lookup per location. */
export function loadRules({ home, userHome, workspace, project: folder = workspace, trusted, own: given = [] }: RulesInput): LoadedRules {
  const places: Places = { workspace, home: userHome }
  const own = readFolder(join(home, 'rules'), places)
  const project = realOf(join(folder, '.braidclaw')) === realOf(home) ? nothing : readProject(folder, trusted, places)
  const program = parseRules({ text: JSON.stringify(given), file: 'threads of the calling program', places })
  const rules = [...own.rules, ...project.rules, ...program.rules]
  const twice = repeated(rules).map((name) => `two rules are called "${name}" (${filesOf(rules, name)}); rename one`)
  return {
    rules: rules.map(ruleThread),
    written: rules,
    ...(rules.length > 0 ? { journal: journalRules(rules, places) } : {}),
    notices: [...own.notices, ...project.notices],
    problems: [...own.problems, ...project.problems, ...program.problems, ...twice],
  }
}

/** Reads the rules of one file, for `verify --threads`. */
export function readRules(file: string, places: Places): ParsedRules {
  const read = readConfigFile(file)
  if (read.state === 'missing') return { ...nothing, problems: [`${file} does not exist`] }
  if (read.state === 'unusable') return { ...nothing, problems: [`${file} ${read.why}`] }
  const notices = read.worldWritable ? [`${file} can be changed by every user of this machine; run: chmod o-w ${file}`] : []
  return { ...parseRules({ text: read.text, file, places }), notices }
}

const nothing: ParsedRules = { rules: [], notices: [], problems: [] }

function readProject(workspace: string, trusted: boolean, places: Places): ParsedRules {
  const folder = join(workspace, '.braidclaw', 'rules')
  if (trusted) return readFolder(folder, places)
  const structure = join(workspace, '.braidclaw', 'structure.toml')
  const ignored = [...(list(folder).names.length > 0 ? [folder] : []), ...(existsSync(structure) ? [structure] : [])]
  const because = `is ignored: this folder is not trusted. Read it, then trust the folder with: braidclaw trust ${quoteText(workspace)}`
  return { ...nothing, notices: ignored.map((place) => `${place} ${because}`) }
}

/** Reads the files in the order of their names. */
function readFolder(folder: string, places: Places): ParsedRules {
  const { names, problem } = list(folder)
  const files = names.filter((name) => name.endsWith('.json'))
  const read = files.map((name) => readRules(join(folder, name), places))
  const odd = names
    .filter((name) => !files.includes(name))
    .map((name) => `${join(folder, name)} is ignored: rules are files that end in .json`)
  return {
    rules: read.flatMap(({ rules }) => rules),
    notices: [...odd, ...read.flatMap(({ notices }) => notices)],
    problems: [...(problem === undefined ? [] : [problem]), ...read.flatMap(({ problems }) => problems)],
  }
}

/** Lists the folder without hidden files, because editors leave those behind. */
function list(folder: string): { readonly names: readonly string[]; readonly problem?: string } {
  try {
    return {
      names: readdirSync(folder)
        .filter((name) => !name.startsWith('.'))
        .sort(),
    }
  } catch (error) {
    const code = errorCode(error)
    return code === 'ENOENT' ? { names: [] } : { names: [], problem: `${folder} cannot be read: ${explainErrno(code)}` }
  }
}

function filesOf(rules: readonly Rule[], name: string): string {
  return [...new Set(rules.filter((rule) => rule.name === name).map(({ file }) => file))].join(', ')
}
