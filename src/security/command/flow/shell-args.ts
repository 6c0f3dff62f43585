/** Parses the arguments of a shell as the shell itself does: its options, their values, and the text or script after them. */

import { otherShells } from '../names.ts'
import { type Arg, couldBe, sure } from './model.ts'

export type ShellArgs = {
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

type Reading = { at: number; text: boolean; input: boolean; unclear: boolean; readonly values: Arg[] }

export function readShellArgs(name: string, args: readonly Arg[]): ShellArgs {
  const reading: Reading = { at: 0, text: false, input: false, unclear: false, values: [] }
  while (reading.at < args.length && readOption(reading, args, name));
  const { at, text, input, unclear, values } = reading
  const operands = args.slice(at)
  const mode = text ? 'text' : input || operands.length === 0 ? 'input' : 'file'
  return { mode, options: args.slice(0, at), values, operands, unclear: unclear || (at > 0 && otherShells.has(name)) }
}

/** @returns false at the first word that is not an option */
function readOption(reading: Reading, args: readonly Arg[], name: string): boolean {
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

function readLetters(reading: Reading, args: readonly Arg[], { letters, name }: { letters: string; name: string }): void {
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

function takeValue(reading: Reading, args: readonly Arg[]): void {
  const value = args[reading.at]
  if (!value) return
  reading.values.push(value)
  reading.at++
}
