/** Judges one command given as its arguments: finds the program that really runs and decides whether it may run. */

import { matchesPattern } from '../../targets/path.ts'
import { downloaders, freeBuiltins, hasSubcommands, opaqueWrappers, riskyBuiltins } from '../names.ts'
import { hostsOf } from '../tools/network.ts'
import { judgeTool } from '../tools/programs.ts'
import { isReader } from '../tools/table.ts'
import type { CommandPolicy } from '../verdict.ts'
import { judgeBuiltin } from './builtins.ts'
import { blockingRule, destructive, isForbidden, namesToBlock } from './destructive.ts'
import { type Arg, basename, type Cwds, HOLE, type Look, literalArg, type Outcome, type Place, resolvePath, sure } from './model.ts'
import { outputOf } from './output.ts'
import { checkLoose, checkPath, linkOperands, noteRun, shown } from './paths.ts'
import { searchTexts } from './search.ts'
import { isInterpreter, isShell, judgeEval, judgeInterpreter, judgeShell, judgeSource, judgeTrap } from './shells.ts'
import { isWrapper, unwrap } from './wrappers.ts'

const systemFolders = /^\/(usr\/(local\/)?)?s?bin\/[^/]+$/

export function invoke(look: Look, words: readonly Arg[], place: Place): Outcome {
  const [command, ...args] = words
  if (!command) return {}
  for (const text of command.texts) refuseText(look, text, args, place)
  const text = sure(command)
  const braces = command.word?.parts?.some((part) => part.type === 'BraceExpansion')
  if (text === undefined || !command.fixed || braces) dynamic(look, command, args, place)
  if (text === undefined) return tooFar(look, args, place)
  const name = basename(text)
  if (text.includes('/') && !isSystemFile(look, text)) return ownFile(look, { text, args, place })
  return named(look, { command, name, args, place })
}

/** Also checks the text with its unknown parts empty, and the text split at spaces. */
function refuseText(look: Look, text: string, args: readonly Arg[], place: Place): void {
  const [first = '', ...more] = text.split(/\s+/)
  refuse(look, basename(text), args, place)
  if (/[*?[]/.test(text)) refusePattern(look, text, args, place)
  if (text.includes(HOLE)) refuse(look, basename(text.replaceAll(HOLE, '')), args, place)
  if (more.length > 0) refuse(look, basename(first), [...more.map((word) => literalArg(word)), ...args], place)
}

/** `/bin/r?`. A pattern without a letter of its own could match any name; another check reports that. */
function refusePattern(look: Look, text: string, args: readonly Arg[], place: Place): void {
  const pattern = basename(text)
  if (!/\w/.test(pattern.replace(/\[[^\]]*\]/g, ''))) return
  const named = namesToBlock(look.policy).find((name) => matchesPattern(pattern, name))
  if (named !== undefined) look.block(blockingRule(named, look.policy), `${pattern} may be ${named}, which runs nowhere`)
  else if (matchesPattern(pattern, 'rm')) refuse(look, 'rm', args, place)
}

function refuse(look: Look, name: string, args: readonly Arg[], place: Place): void {
  const reason = destructive(name, args, { ...look.policy, cwds: place.cwds })
  const instead = name === 'rm' ? '; use the tool file_delete, with recursive for a folder' : ''
  if (isForbidden(name, look.policy.forbidden))
    look.block('command.forbidden', `${name} is one of forbidden_commands and runs nowhere${instead}`)
  else if (reason !== undefined) look.block('command.destructive', reason)
}

/** `$SUDO rm`: when the first word expands to nothing, the next word is the command. */
function dynamic(look: Look, command: Arg, args: readonly Arg[], place: Place): void {
  if (place.inFunction !== undefined) look.found.runsArguments.add(place.inFunction)
  look.raise('command.dynamic', `which command ${shown(command)} is, is known only when it runs; write it out`)
  const next = args[0] && sure(args[0])
  if (command.vanishes && next !== undefined) refuse(look, basename(next), args.slice(1), place)
}

function tooFar(look: Look, args: readonly Arg[], place: Place): Outcome {
  if (args.some((arg) => arg.downloads))
    look.block('command.download_to_shell', 'something downloaded would be given to an unknown command')
  // `"$SHELL" -c 'text'`.
  const option = args.findIndex((arg) => /^[-+][a-zA-Z]*c[a-zA-Z]*$/.test(sure(arg) ?? ''))
  if (option >= 0)
    searchTexts(
      look,
      args.slice(option + 1).flatMap((arg) => arg.texts),
      place,
    )
  for (const arg of args) checkLoose(look, arg, 'write', place)
  return {}
}

function isSystemFile(look: Look, path: string): boolean {
  return systemFolders.test(path) || look.policy.resolve(basename(path)) === path
}

type Called = { readonly command: Arg; readonly name: string; readonly args: readonly Arg[]; readonly place: Place }

/** Judges a program in the workspace or in another folder outside the system's folders. */
function ownFile(look: Look, { text, args, place }: { text: string; args: readonly Arg[]; place: Place }): Outcome {
  look.found.executables.add(text)
  look.raise(
    'command.not_allowed',
    `${JSON.stringify(text.slice(0, 60))} is a program outside the system's folders, so no list can allow it`,
  )
  checkPath(look, literalArg(text), 'run', place)
  noteRun(look, [text], place)
  for (const cwd of place.cwds ?? [look.policy.cwd]) {
    const verdict = look.policy.path(text, 'run', cwd)
    // A link to a program runs that program under another name.
    if (verdict.ok && verdict.real !== undefined) refuse(look, basename(verdict.real), args, place)
  }
  for (const arg of args) checkLoose(look, arg, 'write', place)
  return {}
}

function named(look: Look, called: Called): Outcome {
  const { command, name, args, place } = called
  const { found, policy } = look
  if (downloaders.has(name)) found.downloads++
  if (!runsInstalled({ name, args, cwds: place.cwds, policy })) for (const host of hostsOf(name, args)) found.hosts.add(host)
  if (!place.external && place.scope.functions.has(name)) return callFunction(look, called)
  if (isWrapper(name)) return unwrap(look, name, args, place)
  if (name === 'eval') return judgeEval(look, args, place)
  if (name === 'trap') return judgeTrap(look, args, place)
  if (name === '.' || name === 'source') return judgeSource(look, args, place)
  if (isShell(name)) return judgeShell(look, { name, command, args, place })
  if (freeBuiltins.has(name) || riskyBuiltins.has(name))
    return { output: outputOf(name, args, place), ...judgeBuiltin(look, { name, args, place }) }
  found.executables.add(name)
  if (!isReader(name) && name !== 'git') found.acts = true
  if (isInterpreter(name)) return judgeInterpreter(look, { name, command, args, place })
  if (opaqueWrappers.has(name)) search(look, called)
  if (!policy.allow.includes(name)) return notAllowed(look, called)
  judgeTool({ look, place, name }, args)
  return { output: outputOf(name, args, place) }
}

function callFunction(look: Look, { name, args, place }: Called): Outcome {
  look.found.calls.push({ from: place.inFunction, to: name, args, place })
  if (args.some((arg) => arg.downloads)) look.block('command.download_to_shell', 'something downloaded would be given to a function')
  return {}
}

function notAllowed(look: Look, { name, args, place }: Called): Outcome {
  look.raise('command.not_allowed', `${name} is not on the allow list (security.allow_commands)`)
  // A name like this is not a program: a wrapper's options were read wrongly, and the program comes later.
  if (place.external && !/^[A-Za-z_]/.test(name)) refuseWords(look, args, place)
  for (const arg of name === 'ln' ? linkOperands(args) : args) checkLoose(look, arg, 'write', place)
  return {}
}

/** For commands that run other commands in too many ways to follow: no word may be a blocked command. */
function search(look: Look, { name, args, place }: Called): void {
  if (!look.policy.allow.includes(name)) look.raise('command.not_allowed', `${name} runs other commands and is not on the allow list`)
  searchTexts(look, [place.feed.text], place)
  refuseWords(look, hasSubcommands.has(name) ? args.slice(1) : args, place)
  searchTexts(
    look,
    args.flatMap((arg) => arg.texts.filter((text) => /[\s;|&$`]/.test(text))),
    place,
  )
}

/** Any word may be the command that runs, with the words after it as its arguments. */
function refuseWords(look: Look, words: readonly Arg[], place: Place): void {
  for (const [index, { texts }] of words.entries()) for (const text of texts) refuse(look, basename(text), words.slice(index + 1), place)
}

/** The sub-commands that run a program by its name; an empty list: the runner itself does. */
const runners: { readonly [name: string]: readonly string[] } = { npx: [], bunx: [], npm: ['exec', 'x'], bun: ['x'] }

/** They change neither which program runs nor from where it comes. */
const plainFlag = /^(?:-y|--yes|--no|--no-install|-q|--quiet|--bun|--)$/

type Asked = {
  readonly name: string
  readonly args: readonly Arg[]
  readonly cwds: Cwds
  readonly policy: Pick<CommandPolicy, 'path' | 'isFile'>
}

/**
 * Recognises `npx NAME` and the like where the workspace has the program itself: then nothing is downloaded, and no network is needed.
 * Takes the program of the nearest `node_modules/.bin`, as the runners do. Where it is wrong, the command fails without a network.
 */
function runsInstalled({ name, args, cwds, policy }: Asked): boolean {
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

/** A program outside the workspace is not taken: the path gate lets none run there. */
function isInstalled(program: string, cwd: string, { path, isFile }: Asked['policy']): boolean {
  for (let folder = resolvePath('.', cwd); folder !== '/'; folder = resolvePath('..', folder)) {
    const file = resolvePath(`node_modules/.bin/${program}`, folder)
    if (isFile?.(file) === true) return path(file, 'run', folder).ok
  }
  return false
}
