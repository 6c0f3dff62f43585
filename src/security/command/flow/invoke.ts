/** Judges one command given as its arguments: finds the program that really runs and decides whether it may run. */

import { matchesPattern } from '../../targets/path.ts'
import { downloaders, freeBuiltins, hasSubcommands, opaqueWrappers, riskyBuiltins } from '../names.ts'
import { hostsOf } from '../tools/network.ts'
import { judgeTool } from '../tools/programs.ts'
import { isReader } from '../tools/table.ts'
import type { CommandPolicy } from '../verdict.ts'
import { judgeBuiltin } from './builtins.ts'
import { blockingRule, destructive, isForbidden, namesToBlock } from './destructive.ts'
import {
  type Arg,
  basename,
  type CommandOutcome,
  type Cwds,
  HOLE,
  type JudgeContext,
  literalArg,
  resolvePath,
  sure,
  type WalkState,
} from './model.ts'
import { outputOf } from './output.ts'
import { checkLoose, checkPath, linkOperands, noteRun, shown } from './paths.ts'
import { searchTexts } from './search.ts'
import { isInterpreter, isShell, judgeEval, judgeInterpreter, judgeShell, judgeSource, judgeTrap } from './shells.ts'
import { isWrapper, unwrap } from './wrappers.ts'

const systemFolders = /^\/(usr\/(local\/)?)?s?bin\/[^/]+$/

export function invoke(judge: JudgeContext, words: readonly Arg[], place: WalkState): CommandOutcome {
  const [command, ...args] = words
  if (!command) return {}
  for (const text of command.texts) refuseText(judge, text, args, place)
  const text = sure(command)
  const braces = command.word?.parts?.some((part) => part.type === 'BraceExpansion')
  if (text === undefined || !command.fixed || braces) dynamic(judge, command, args, place)
  if (text === undefined) return tooFar(judge, args, place)
  const name = basename(text)
  if (text.includes('/') && !isSystemFile(judge, text)) return ownFile(judge, { text, args, place })
  return named(judge, { command, name, args, place })
}

/** Also checks the text with its unknown parts empty, and the text split at spaces. */
function refuseText(judge: JudgeContext, text: string, args: readonly Arg[], place: WalkState): void {
  const [first = '', ...more] = text.split(/\s+/)
  refuse(judge, basename(text), args, place)
  if (/[*?[]/.test(text)) refusePattern(judge, text, args, place)
  if (text.includes(HOLE)) refuse(judge, basename(text.replaceAll(HOLE, '')), args, place)
  if (more.length > 0) refuse(judge, basename(first), [...more.map((word) => literalArg(word)), ...args], place)
}

/** `/bin/r?`. A pattern without a letter of its own could match any name; another check reports that. */
function refusePattern(judge: JudgeContext, text: string, args: readonly Arg[], place: WalkState): void {
  const pattern = basename(text)
  if (!/\w/.test(pattern.replace(/\[[^\]]*\]/g, ''))) return
  const named = namesToBlock(judge.policy).find((name) => matchesPattern(pattern, name))
  if (named !== undefined) judge.block(blockingRule(named, judge.policy), `${pattern} may be ${named}, which runs nowhere`)
  else if (matchesPattern(pattern, 'rm')) refuse(judge, 'rm', args, place)
}

function refuse(judge: JudgeContext, name: string, args: readonly Arg[], place: WalkState): void {
  const reason = destructive(name, args, { ...judge.policy, cwds: place.cwds })
  const instead = name === 'rm' ? '; use the tool file_delete, with recursive for a folder' : ''
  if (isForbidden(name, judge.policy.forbidden))
    judge.block('command.forbidden', `${name} is one of forbidden_commands and runs nowhere${instead}`)
  else if (reason !== undefined) judge.block('command.destructive', reason)
}

/** `$SUDO rm`: when the first word expands to nothing, the next word is the command. */
function dynamic(judge: JudgeContext, command: Arg, args: readonly Arg[], place: WalkState): void {
  if (place.inFunction !== undefined) judge.found.runsArguments.add(place.inFunction)
  judge.raise('command.dynamic', `which command ${shown(command)} is, is known only when it runs; write it out`)
  const next = args[0] && sure(args[0])
  if (command.vanishes && next !== undefined) refuse(judge, basename(next), args.slice(1), place)
}

function tooFar(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  if (args.some((arg) => arg.downloads))
    judge.block('command.download_to_shell', 'something downloaded would be given to an unknown command')
  // `"$SHELL" -c 'text'`.
  const option = args.findIndex((arg) => /^[-+][a-zA-Z]*c[a-zA-Z]*$/.test(sure(arg) ?? ''))
  if (option >= 0)
    searchTexts(
      judge,
      args.slice(option + 1).flatMap((arg) => arg.texts),
      place,
    )
  for (const arg of args) checkLoose(judge, arg, 'write', place)
  return {}
}

function isSystemFile(judge: JudgeContext, path: string): boolean {
  return systemFolders.test(path) || judge.policy.resolve(basename(path)) === path
}

type ProgramCall = { readonly command: Arg; readonly name: string; readonly args: readonly Arg[]; readonly place: WalkState }

/** Judges a program in the workspace or in another folder outside the system's folders. */
function ownFile(judge: JudgeContext, { text, args, place }: { text: string; args: readonly Arg[]; place: WalkState }): CommandOutcome {
  judge.found.executables.add(text)
  judge.raise(
    'command.not_allowed',
    `${JSON.stringify(text.slice(0, 60))} is a program outside the system's folders, so no list can allow it`,
  )
  checkPath(judge, literalArg(text), 'run', place)
  noteRun(judge, [text], place)
  for (const cwd of place.cwds ?? [judge.policy.cwd]) {
    const verdict = judge.policy.path(text, 'run', cwd)
    // A link to a program runs that program under another name.
    if (verdict.ok && verdict.real !== undefined) refuse(judge, basename(verdict.real), args, place)
  }
  for (const arg of args) checkLoose(judge, arg, 'write', place)
  return {}
}

function named(judge: JudgeContext, called: ProgramCall): CommandOutcome {
  const { command, name, args, place } = called
  const { found, policy } = judge
  if (downloaders.has(name)) found.downloads++
  if (!runsInstalled({ name, args, cwds: place.cwds, policy })) for (const host of hostsOf(name, args)) found.hosts.add(host)
  if (!place.external && place.scope.functions.has(name)) return callFunction(judge, called)
  if (isWrapper(name)) return unwrap(judge, name, args, place)
  if (name === 'eval') return judgeEval(judge, args, place)
  if (name === 'trap') return judgeTrap(judge, args, place)
  if (name === '.' || name === 'source') return judgeSource(judge, args, place)
  if (isShell(name)) return judgeShell(judge, { name, command, args, place })
  if (freeBuiltins.has(name) || riskyBuiltins.has(name))
    return { output: outputOf(name, args, place), ...judgeBuiltin(judge, { name, args, place }) }
  found.executables.add(name)
  if (!isReader(name) && name !== 'git') found.acts = true
  if (isInterpreter(name)) return judgeInterpreter(judge, { name, command, args, place })
  if (opaqueWrappers.has(name)) search(judge, called)
  if (!policy.allow.includes(name)) return notAllowed(judge, called)
  judgeTool({ judge, place, name }, args)
  return { output: outputOf(name, args, place) }
}

function callFunction(judge: JudgeContext, { name, args, place }: ProgramCall): CommandOutcome {
  judge.found.calls.push({ from: place.inFunction, to: name, args, place })
  if (args.some((arg) => arg.downloads)) judge.block('command.download_to_shell', 'something downloaded would be given to a function')
  return {}
}

function notAllowed(judge: JudgeContext, { name, args, place }: ProgramCall): CommandOutcome {
  judge.raise('command.not_allowed', `${name} is not on the allow list (security.allow_commands)`)
  // A name like this is not a program: a wrapper's options were read wrongly, and the program comes later.
  if (place.external && !/^[A-Za-z_]/.test(name)) refuseWords(judge, args, place)
  for (const arg of name === 'ln' ? linkOperands(args) : args) checkLoose(judge, arg, 'write', place)
  return {}
}

/** Checks commands that run other commands in too many ways to follow: no word may be a blocked command. */
function search(judge: JudgeContext, { name, args, place }: ProgramCall): void {
  if (!judge.policy.allow.includes(name)) judge.raise('command.not_allowed', `${name} runs other commands and is not on the allow list`)
  searchTexts(judge, [place.feed.text], place)
  refuseWords(judge, hasSubcommands.has(name) ? args.slice(1) : args, place)
  searchTexts(
    judge,
    args.flatMap((arg) => arg.texts.filter((text) => /[\s;|&$`]/.test(text))),
    place,
  )
}

/** Any word may be the command that runs, with the words after it as its arguments. */
function refuseWords(judge: JudgeContext, words: readonly Arg[], place: WalkState): void {
  for (const [index, { texts }] of words.entries()) for (const text of texts) refuse(judge, basename(text), words.slice(index + 1), place)
}

/** The sub-commands that run a program by its name; an empty list: the runner itself does. */
const runners: { readonly [name: string]: readonly string[] } = { npx: [], bunx: [], npm: ['exec', 'x'], bun: ['x'] }

/** Options that change neither which program runs nor where it comes from. */
const plainFlag = /^(?:-y|--yes|--no|--no-install|-q|--quiet|--bun|--)$/

type RunnerCall = {
  readonly name: string
  readonly args: readonly Arg[]
  readonly cwds: Cwds
  readonly policy: Pick<CommandPolicy, 'path' | 'isFile'>
}

/**
 * Recognises `npx NAME` and the like where the workspace has the program itself: then nothing is downloaded, and no network is needed.
 * Takes the program of the nearest `node_modules/.bin`, as the runners do. Where it is wrong, the command fails without a network.
 */
function runsInstalled({ name, args, cwds, policy }: RunnerCall): boolean {
  const program = programOf(name, args.map(sure))
  if (program === undefined || cwds === undefined) return false
  return cwds.every((cwd) => isInstalled(program, cwd, policy))
}

function programOf(name: string, words: readonly (string | undefined)[]): string | undefined {
  const subs = Object.hasOwn(runners, name) ? runners[name] : undefined
  if (subs === undefined || (subs.length > 0 && !subs.includes(words[0] ?? ''))) return
  const program = words.slice(Math.min(subs.length, 1)).find((word) => word === undefined || !plainFlag.test(word))
  return program !== undefined && /^\w[\w.-]*$/.test(program) ? program : undefined
}

/** Leaves out a program outside the workspace, where the path gate allows none to run. */
function isInstalled(program: string, cwd: string, { path, isFile }: RunnerCall['policy']): boolean {
  for (let folder = resolvePath('.', cwd); folder !== '/'; folder = resolvePath('..', folder)) {
    const file = resolvePath(`node_modules/.bin/${program}`, folder)
    if (isFile?.(file) === true) return path(file, 'run', folder).ok
  }
  return false
}
