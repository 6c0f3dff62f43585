/** Separates the options and operands of one tool as its own getopt would, and gives each value its meaning. */

import { type Arg, HOLE, sure, tail } from './model.ts'

/** `refuse`: the option itself is not allowed. `exec`: its value is run as a command. */
export type OptionMeaning = 'data' | 'read' | 'write' | 'refuse' | 'exec' | 'flag'

/**
 * Spaces separate the options. Every listed option, except in `flag` and `refuse`, takes a value, attached or as the next argument.
 * Unlisted options are flags; a value attached to them is checked if it looks like a path.
 */
export type OptionTable = {
  readonly data?: string
  readonly read?: string
  readonly write?: string
  readonly exec?: string
  readonly refuse?: string
  readonly flag?: string
  /** Short options whose value, if any, is attached: `-i.bak`. */
  readonly attached?: string
}

export type Option = { readonly name: string; readonly meaning: OptionMeaning; readonly value: Arg | undefined; readonly arg: Arg }

export type ParsedOptions = {
  readonly options: readonly Option[]
  readonly operands: readonly Arg[]
  /** The operands after a `--`, which cannot be options. */
  readonly behind: readonly Arg[]
  /** An option that is abbreviated or uncertain, and so could be an option with a meaning. */
  readonly unclear: Arg | undefined
}

type Words = { readonly [meaning in OptionMeaning | 'attached']: readonly string[] }

/** `inOrder`: the first operand ends the options. */
export function parseOptions(args: readonly Arg[], table: OptionTable, { inOrder = false } = {}): ParsedOptions {
  const words = wordsOf(table)
  const matters = meanings.some((one) => words[one].length > 0)
  const options: Option[] = []
  const operands: Arg[] = []
  let unclear: Arg | undefined
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]
    const text = arg?.texts[0] ?? ''
    if (!arg) break
    if (sure(arg) === '--') {
      const behind = args.slice(at + 1)
      return { options, operands: [...operands, ...behind], behind, unclear }
    }
    if (!isOption(arg)) {
      if (inOrder) return { options, operands: [...operands, ...args.slice(at)], behind: [], unclear }
      operands.push(arg)
      continue
    }
    const found = text.startsWith('--') ? long(arg, args[at + 1], words) : cluster(arg, args[at + 1], words)
    options.push(...found.options)
    unclear ??= found.unclear || (matters && isUncertain(arg, found, inOrder)) ? arg : undefined
    if (inOrder && found.tookNext) unclear ??= notJustOne(args[at + 1])
    // An argument that looks like an option is also read as an option, in case the option before it takes no value.
    if (found.tookNext && !/^--?[A-Za-z]/.test(args[at + 1]?.texts[0] ?? '')) at++
  }
  return { options, operands, behind: [], unclear }
}

function isOption({ texts }: Arg): boolean {
  return texts.every((text) => text.startsWith('-') && text !== '-' && !text.startsWith(`-${HOLE}`))
}

/**
 * Tells whether the argument may be another option or, where a command comes `behind`, may take that command as its value: `-a$x` is only `-a`
 * when `$x` is empty.
 */
function isUncertain({ texts, kind }: Arg, { options, tookNext }: OptionReading, behind: boolean): boolean {
  const [text = ''] = texts
  const isLongOption = text.startsWith('--')
  const attached = isLongOption ? text.indexOf('=') + 1 : tookNext || !options.at(-1)?.value ? 0 : options.length + 1
  if (attached === 0) return texts.length > 1 || (behind && text.includes(HOLE))
  const mayBeNothing = (rest: string): boolean => rest === '' || (rest.startsWith(HOLE) && kind !== 'number' && kind !== 'glob')
  return texts.some((one) => !one.startsWith(text.slice(0, attached)) || (behind && !isLongOption && mayBeNothing(one.slice(attached))))
}

/** `exec -a $x ls`: when `$x` is empty, `ls` is the value and the next word is the command. */
function notJustOne(next: Arg | undefined): Arg | undefined {
  const unsure = next && (next.vanishes || (next.several && next.kind !== 'literal' && next.kind !== 'number'))
  return unsure ? next : undefined
}

function wordsOf(table: OptionTable): Words {
  const split = (text = '') => text.split(' ').filter(Boolean)
  return {
    data: split(table.data),
    read: split(table.read),
    write: split(table.write),
    exec: split(table.exec),
    refuse: split(table.refuse),
    flag: split(table.flag),
    attached: split(table.attached),
  }
}

type OptionReading = { readonly options: readonly Option[]; readonly tookNext: boolean; readonly unclear: boolean }

const meanings: readonly OptionMeaning[] = ['exec', 'refuse', 'write', 'read', 'data']

function long(arg: Arg, next: Arg | undefined, words: Words): OptionReading {
  const text = arg.texts[0] ?? ''
  const name = /^[^=]*/.exec(text)?.[0] ?? ''
  const attached = text.includes('=') ? tail(arg, text.indexOf('=') + 1) : undefined
  const meaning = meanings.find((one) => words[one].includes(name)) ?? 'flag'
  const shortened =
    meaning === 'flag' &&
    name.length > 2 &&
    !words.flag.includes(name) &&
    meanings.some((one) => words[one].some((word) => word.startsWith(name)))
  const takesNext = meaning !== 'flag' && meaning !== 'refuse' && !attached && next !== undefined
  const value = attached ?? (takesNext ? next : undefined)
  return { options: [{ name, meaning, value, arg }], tookNext: takesNext, unclear: shortened }
}

/** `-ro file`: single letters up to the first that takes a value. */
function cluster(arg: Arg, next: Arg | undefined, words: Words): OptionReading {
  const text = arg.texts[0] ?? ''
  const options: Option[] = []
  for (let at = 1; at < text.length; at++) {
    const name = `-${text[at]}`
    const rest = at + 1 < text.length ? tail(arg, at + 1) : undefined
    const meaning = meanings.find((one) => words[one].includes(name)) ?? 'flag'
    if (words.attached.includes(name))
      return { options: [...options, { name, meaning, value: rest, arg }], tookNext: false, unclear: false }
    if (meaning === 'flag' && rest && /^[/~.=]/.test(rest.texts[0] ?? '')) {
      return { options: [...options, { name, meaning, value: rest, arg }], tookNext: false, unclear: false }
    }
    const takesValue = meaning !== 'flag' && meaning !== 'refuse'
    options.push({ name, meaning, value: takesValue ? (rest ?? next) : undefined, arg })
    if (takesValue) return { options, tookNext: !rest && next !== undefined, unclear: false }
  }
  return { options, tookNext: false, unclear: false }
}
