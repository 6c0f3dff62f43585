/** Judges tar: what it packs, where it unpacks, and the options that run programs. */

import { type Arg, literalArg, sure } from '../flow/model.ts'
import { type Option, type OptionTable, parseOptions } from '../flow/options.ts'
import { checkPath } from '../flow/paths.ts'
import { checkOptions, guard, type Use } from './rule.ts'

const table: OptionTable = {
  data: '-b --blocking-factor -K --starting-file -N --newer --after-date -V --label -L --tape-length -H --format --exclude --strip-components --owner --group --mode --mtime --sort --level --quoting-style --record-size --suffix --warning',
  read: '-T --files-from -X --exclude-from --exclude-ignore',
  write: '-g --listed-incremental --index-file --volno-file',
  exec: '-I --use-compress-program --to-command --checkpoint-action -F --info-script --new-volume-script --rsh-command --rmt-command',
  refuse: '-P --absolute-names --remove-files --recursive-unlink --unlink-first -U --transform --xform --one-top-level',
  flag: '--exclude --checkpoint --exclude-vcs --exclude-caches --exclude-backups --extract --get --create --list --append --update --diff --compare --concatenate --catenate --delete --totals --touch --newer --format --to-stdout --file --directory',
}

const located: OptionTable = { ...table, data: `${table.data} -f --file -C --directory` }

export function judgeTar(use: Use, args: readonly Arg[]): undefined {
  const { look, place } = use
  const parsed = parseOptions(unbundled(args), located)
  checkOptions(use, parsed)
  guard(use, parsed)
  const mode = modeOf(parsed.options)
  if (mode === undefined) return look.raise('command.option', 'tar: whether it packs, unpacks or lists is not plain')
  const packs = mode === 'pack'
  for (const option of parsed.options) if (/^(-f|--file)$/.test(option.name)) checkArchive(use, option, packs)
  for (const option of parsed.options) {
    if (/^(-C|--directory)$/.test(option.name) && option.value) checkPath(look, option.value, mode === 'unpack' ? 'write' : 'read', place)
  }
  if (mode === 'unpack') checkPath(look, literalArg('.'), 'write', place)
  if (packs) for (const operand of parsed.operands) checkPath(look, operand, 'read', place)
}

/** `tar xzf a.tgz`: letters without a dash, whose values follow in order. */
function unbundled(args: readonly Arg[]): readonly Arg[] {
  const [first, ...rest] = args
  const letters = first && sure(first)
  if (letters === undefined || !/^[A-Za-z]+$/.test(letters)) return args
  const taken = [...letters].flatMap((letter) => (/[fbCTXgKNVLHIF]/.test(letter) ? [letter] : []))
  const values = taken.flatMap((letter, index) => [literalArg(`-${letter}`), ...rest.slice(index, index + 1)])
  const flags = [...letters].filter((letter) => !taken.includes(letter)).map((letter) => literalArg(`-${letter}`))
  return [...flags, ...values, ...rest.slice(taken.length)]
}

function modeOf(options: readonly Option[]): 'pack' | 'unpack' | 'list' | undefined {
  const named = (pattern: RegExp) => options.some((option) => pattern.test(option.name))
  if (named(/^(--delete|--concatenate|--catenate|-A)$/)) return
  if (named(/^(-c|-r|-u|--create|--append|--update)$/)) return 'pack'
  if (named(/^(-x|--extract|--get)$/)) return 'unpack'
  return named(/^(-t|--list|-d|--diff|--compare|--version|--help)$/) ? 'list' : undefined
}

/** A colon makes the archive a remote archive, which tar fetches through another program. */
function checkArchive({ look, place }: Use, { value }: Option, packs: boolean): void {
  if (!value || sure(value) === '-') return
  if (value.texts.some((text) => text.includes(':')))
    look.raise('command.option', 'tar: an archive name with a colon is on another machine')
  checkPath(look, value, packs ? 'write' : 'read', place)
}
