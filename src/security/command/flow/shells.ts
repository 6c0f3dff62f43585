/** Judges shells and interpreters: it reads the text they are given where possible, and blocks text that was just downloaded. */

import { interpreters, otherShells, posixShells, withoutVersion } from '../names.ts'
import { quoteText } from '../syntax/quote.ts'
import { commandsIn } from '../syntax/survey.ts'
import { blockingRule, namesToBlock, removalIn } from './destructive.ts'
import { type Arg, type CommandOutcome, couldBe, type JudgeContext, spelled, sure, type WalkState } from './model.ts'
import { checkLoose, checkPath, noteRun, shown } from './paths.ts'
import { joinedTexts, searchTexts } from './search.ts'

export function isShell(name: string): boolean {
  return posixShells.has(name) || otherShells.has(name)
}

export function isInterpreter(name: string): boolean {
  return interpreters.has(name) || interpreters.has(withoutVersion(name))
}

type Started = { readonly name: string; readonly command: Arg | undefined; readonly args: readonly Arg[]; readonly place: WalkState }

/** `bash -c text`, `bash script`, `… | bash`. */
export function judgeShell(judge: JudgeContext, started: Started): CommandOutcome {
  const { name, args, place } = started
  if (args.some((arg) => arg.downloads)) return downloaded(judge, name)
  for (const arg of args) searchOutputs(judge, arg, place)
  const given = readShellArgs(name, args)
  for (const value of given.values) checkLoose(judge, value, 'read', place)
  const outcome = judgeGiven(judge, started, given)
  if (given.unclear) searchUnclear(judge, started, given)
  return outcome
}

function judgeGiven(judge: JudgeContext, started: Started, given: ShellArgs): CommandOutcome {
  if (given.mode === 'text') return judgeText(judge, started, given)
  return given.mode === 'input' ? judgeInput(judge, started.name, started.place) : judgeFile(judge, started, given.operands[0])
}

/** Any word may be the text: after an unknown option, or as the value of an option. */
function searchUnclear(judge: JudgeContext, { name, args, place }: Started, { options }: ShellArgs): void {
  judge.raise('command.code', `which words ${name} runs is not certain; use bash -c 'plain text'`)
  const words = args.filter((arg) => !options.includes(arg) || arg.texts.some((text) => /[\s=]/.test(text)))
  const texts = words.flatMap((arg) => arg.texts.map((text) => text.replace(/^--?[\w-]+=/, '')))
  searchTexts(judge, [...texts, place.feed.text], place)
}

function downloaded(judge: JudgeContext, name: string): CommandOutcome {
  judge.block('command.download_to_shell', `${name} would execute what was just downloaded; save it, read it, then decide`)
  return {}
}

/** `<(echo text)`: searches the output that is certain. */
function searchOutputs(judge: JudgeContext, arg: Arg, place: WalkState): void {
  for (const part of arg.word?.parts ?? []) {
    const output = judge.found.outputs.get(part)
    if (part.type === 'ProcessSubstitution' && output) searchTexts(judge, [output.text], place)
  }
}

function judgeText(judge: JudgeContext, { name, command, args, place }: Started, given: ShellArgs): CommandOutcome {
  const [text, ...rest] = given.operands
  const known = text?.kind === 'literal' ? text.texts : []
  const read = known.map((one) => judge.text(one, place, { shared: false, positional: rest }))
  const print = read.length === 1 && text?.fixed ? read[0]?.print : undefined
  if (known.length === 0) judge.raise('command.code', `${name} -c ${text ? shown(text) : ''} runs text that is known only when it runs`)
  if (known.length === 0) searchTexts(judge, text?.texts ?? [], place)
  const rewritten = print !== undefined && isPlain(given) && posixShells.has(name) && command?.word && text?.word
  if (!rewritten) judge.raise('command.code', `${name} -c with these words is not followed; use bash -c 'plain text'`)
  else {
    judge.found.edits.set(command.word, 'bash --noprofile --norc')
    judge.found.edits.set(text.word, quoteText(print))
  }
  if (args.some((arg) => arg.kind === 'unknown')) for (const arg of rest) checkLoose(judge, arg, 'write', place)
  return { output: read[0]?.flow.output }
}

/** The options change neither how the text is read nor which other files are read. */
function isPlain({ options, values, unclear }: ShellArgs): boolean {
  const plainName = /^(allexport|errexit|errtrace|functrace|noclobber|noexec|noglob|nounset|pipefail|verbose|xtrace)$/
  const plain = (arg: Arg) => (values.includes(arg) ? plainName : /^(-[ceuxlnfo]+|--norc|--noprofile|--)$/).test(sure(arg) ?? '')
  return !unclear && options.every(plain)
}

function judgeInput(judge: JudgeContext, name: string, { feed, ...place }: WalkState): CommandOutcome {
  if (feed.downloads) return downloaded(judge, name)
  judge.raise('command.code', `${name} runs whatever it reads from its input; name the commands themselves`)
  searchTexts(judge, [feed.text], { ...place, feed })
  return {}
}

function judgeFile(judge: JudgeContext, { name, place, args }: Started, file: Arg | undefined): CommandOutcome {
  if (file && /^(-|\/dev\/(stdin|fd\/\d+)|\/proc\/self\/fd\/\d+)$/.test(sure(file) ?? '')) return judgeInput(judge, name, place)
  judge.found.acts = true
  if (!judge.policy.allow.includes(name)) judge.raise('command.code', `${name} runs a script that is not looked through`)
  for (const arg of args) checkLoose(judge, arg, 'write', place)
  if (file) checkPath(judge, file, 'read', place)
  if (file) noteRun(judge, file.texts, place)
  return {}
}

/** Options after which an interpreter takes code, or a reference to code, from the command line. */
const takesCode =
  /^(-[a-zA-Z]*[ceEpPrRlIMmSsX]|--(eval|print|execute|command|run|require|import|loader|experimental-loader|env-file|module)\b)/

/** Judges Python, Perl, Node and the like: their code is not analysed, and a file runs only when the interpreter is allow-listed. */
export function judgeInterpreter(judge: JudgeContext, { name, args, place }: Started): CommandOutcome {
  const file = args.find((arg) => !/^-/.test(sure(arg) ?? ''))
  const code = args.find((arg) => takesCode.test(sure(arg) ?? ''))
  if (args.some((arg) => arg.downloads) || (place.feed.downloads && (!file || code))) return downloaded(judge, name)
  searchCode(judge, { name, args, place }, file && !code ? '' : place.feed.text)
  if (code) judge.raise('command.code', `${name} ${shown(code)} runs code given on the command line; put it into a file`)
  else if (!file && !args.some((arg) => /^(--version|-V|--help)$/.test(sure(arg) ?? '')))
    judge.raise('command.code', `${name} runs whatever it reads from its input`)
  if (!judge.policy.allow.includes(name)) judge.raise('command.not_allowed', `${name} is not on the allow list (security.allow_commands)`)
  for (const arg of args) if (arg !== code) checkLoose(judge, arg, 'write', place)
  if (file && !code) checkPath(judge, file, 'read', place)
  if (file && !code) noteRun(judge, file.texts, place)
  return {}
}

/** Code is not followed, but a blocked program that it visibly starts is still found. */
function searchCode(judge: JudgeContext, { name, args, place: { cwds } }: Omit<Started, 'command'>, feed: string): void {
  const names = namesToBlock(judge.policy)
  for (const code of [...args.flatMap((arg) => arg.texts), feed]) {
    const started = startedBy(code, names)
    if (started !== undefined) judge.block(blockingRule(started, judge.policy), `the code for ${name} starts ${started}`)
    const removal = startedBy(code, ['rm']) && removalIn(code, { ...judge.policy, cwds })
    if (removal !== undefined) judge.block('command.destructive', `in the code for ${name}, ${removal}`)
  }
}

/** `eval words`: the shell joins the words with spaces and reads the result again. */
export function judgeEval(judge: JudgeContext, all: readonly Arg[], place: WalkState): CommandOutcome {
  const args = withoutDashes(all)
  if (args.some((arg) => arg.downloads)) return downloaded(judge, 'eval')
  const texts = args.map(spelled)
  if (texts.includes(undefined)) {
    judge.raise('command.code', 'eval runs text that is known only when it runs')
    searchTexts(judge, joinedTexts(args), place)
    return { cwds: { to: undefined } }
  }
  const { print, flow } = judge.text(texts.join(' '), place, { shared: true })
  if (args.every((arg) => arg.fixed && arg.word) && print !== undefined) rewrite(judge, args, print)
  else judge.raise('command.code', 'eval with these words is not followed; write the command itself')
  return { cwds: { to: flow.ok }, output: flow.output }
}

function withoutDashes(args: readonly Arg[]): readonly Arg[] {
  return sure(args[0]) === '--' ? args.slice(1) : args
}

function rewrite(judge: JudgeContext, args: readonly Arg[], print: string): void {
  for (const [index, arg] of args.entries()) if (arg.word) judge.found.edits.set(arg.word, index === 0 ? quoteText(print) : '')
}

/** `trap text signals`: the text may run at any time, so it must not change directory. */
export function judgeTrap(judge: JudgeContext, all: readonly Arg[], place: WalkState): CommandOutcome {
  const args = withoutDashes(all)
  const [first, ...signals] = args
  const text = first && sure(first)
  if (!first || signals.length === 0 || text === '-' || text === '' || /^-[lp]/.test(text ?? '')) return {}
  const before = { ...place, assigned: new Set<string>() }
  const read = text === undefined ? undefined : judge.text(text, before, { shared: true })
  if (read && /\b(cd|pushd|popd)\b/.test(text ?? '')) judge.raise('command.code', 'a trap that changes directory is not followed')
  if (read?.print !== undefined && first.word && first.fixed) judge.found.edits.set(first.word, quoteText(read.print))
  else judge.raise('command.code', 'a trap runs text that is known only when it runs')
  if (!read) searchTexts(judge, first.texts, before)
  return {}
}

/** `. file`, `source file`. */
export function judgeSource(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  const [file] = args
  if (file?.downloads || (place.feed.downloads && /^(-|\/dev\/stdin)$/.test((file && sure(file)) ?? ''))) return downloaded(judge, 'source')
  judge.raise('command.code', 'source runs a script that is not looked through')
  if (file) searchOutputs(judge, file, place)
  if (file && sure(file) === '/dev/stdin') searchTexts(judge, [place.feed.text], place)
  if (file && sure(file) !== '/dev/stdin') checkPath(judge, file, 'read', place)
  if (file && sure(file) !== '/dev/stdin') noteRun(judge, file.texts, place)
  return { cwds: { to: undefined } }
}

/** Functions and operators of common languages that start other programs. */
const starts = /\b(system|popen\w*|exec\w*|spawn\w*|subprocess|shell\w*|qx|capture[23]e?|passthru)\b|`|%x/i

/** A string after a comma is an argument of the started program, not the program. */
const strings = /(?<!,\s*)(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`|(?:qx|qw|%x)\s*[({[/|!]([^)}\]/|!]*))/gs

/** `:!ls` of editors, `.shell ls` and `\\! ls` of database shells. */
const escapes = /(?:^|\n)\s*(?::?\\?!|[:.]?(?:shell|system)\s)\s*([^\n]+)/g

/**
 * Finds the programs that code on an interpreter's command line starts, as far as its string literals show.
 * @returns the first of the names that the code starts or seems to start
 */
function startedBy(code: string, names: readonly string[]): string | undefined {
  const quoted = starts.test(code) ? [...code.matchAll(strings)] : []
  const texts = [...quoted, ...code.matchAll(escapes)].map(([, ...parts]) => parts.join('').replace(/\\(.)/gs, '$1'))
  return texts.map((text) => commandsIn(text, names)).find((name) => name !== undefined)
}

type ShellArgs = {
  /** `text` (`-c`): the first operand is text to run. `file`: it is a script file. `input`: the shell runs its standard input. */
  readonly mode: 'text' | 'file' | 'input'
  readonly options: readonly Arg[]
  /** The members of `options` that are values of the option before: `pipefail` in `-o pipefail`. */
  readonly values: readonly Arg[]
  /** The text or the script file, then its own arguments. */
  readonly operands: readonly Arg[]
  /** Some shell of that name would parse the words differently, so any of them may be text to run. */
  readonly unclear: boolean
}

/** bash also accepts these with one dash; the first two take a file as the next word. */
const longOptions = new Set(
  'rcfile init-file debug debugger dump-po-strings dump-strings help login noediting noprofile norc posix pretty-print restricted verbose version'.split(
    ' ',
  ),
)
const longWithValue = /^--?(rcfile|init-file)$/

/** All of these shells accept `-o NAME`, and bash accepts `-O NAME`; `sh` may be any of them. */
const namesOption: { readonly [shell: string]: RegExp } = { bash: /[oO]/, rbash: /[oO]/, sh: /[oO]/ }

type OptionState = { at: number; text: boolean; input: boolean; unclear: boolean; readonly values: Arg[] }

/** Parses the arguments of a shell as the shell itself does: its options, their values, and the text or script after them. */
function readShellArgs(name: string, args: readonly Arg[]): ShellArgs {
  const reading: OptionState = { at: 0, text: false, input: false, unclear: false, values: [] }
  while (reading.at < args.length && readOption(reading, args, name));
  const { at, text, input, unclear, values } = reading
  const operands = args.slice(at)
  const mode = text ? 'text' : input || operands.length === 0 ? 'input' : 'file'
  return { mode, options: args.slice(0, at), values, operands, unclear: unclear || (at > 0 && otherShells.has(name)) }
}

/** @returns false at the first word that is not an option */
function readOption(reading: OptionState, args: readonly Arg[], name: string): boolean {
  const arg = args[reading.at]
  const word = sure(arg)
  if (word === undefined) {
    // The word may also be an option, or expand to nothing.
    reading.unclear = arg !== undefined && couldBe(arg, /^[-+]/)
    return false
  }
  if (!/^[-+]/.test(word)) return false
  reading.at++
  if (word === '-' || word === '--') return false
  if (longWithValue.test(word)) takeValue(reading, args)
  else if (!word.startsWith('--') && !longOptions.has(word.slice(1))) readLetters(reading, args, { letters: word.slice(1), name })
  return true
}

function readLetters(reading: OptionState, args: readonly Arg[], { letters, name }: { letters: string; name: string }): void {
  const takes = Object.hasOwn(namesOption, name) ? namesOption[name] : /o/
  for (const [index, letter] of [...letters].entries()) {
    if (letter === 'c') reading.text = true
    if (letter === 's') reading.input = true
    if (!takes?.test(letter)) continue
    takeValue(reading, args)
    // zsh and ksh take the rest of the word as the value; only bash knows -O.
    if (index < letters.length - 1 || (letter === 'O' && name === 'sh')) reading.unclear = true
  }
}

function takeValue(reading: OptionState, args: readonly Arg[]): void {
  const value = args[reading.at]
  if (!value) return
  reading.values.push(value)
  reading.at++
}
