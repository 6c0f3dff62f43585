/** Judges npm, bun and make: they may run what the project declares, but no program given on the command line. */

import { type Arg, sure } from '../flow/model.ts'
import { type OptionTable, type ParsedOptions, parseOptions } from '../flow/options.ts'
import { checkLoose, checkPath, noteRun } from '../flow/paths.ts'
import { checkOptions, type Use } from './rule.ts'

const npmTable: OptionTable = {
  data: '-w --workspace --loglevel --depth --omit --include',
  read: '-C --prefix',
  exec: '--script-shell --shell --node-options --editor --git --viewer --browser --call -c',
  refuse: '--userconfig --globalconfig --cache --registry --init-module -g --global --location --scripts-prepend-node-path --package',
  flag: '--globals --include --git-tag-version --json --parseable --production --prefer-offline --prefer-dedupe --package-lock --package-lock-only',
}

/** Allowed only without further words; `npmNamed` accepts words. */
const npmAlone = new Set('ci install i clean-install outdated audit doctor version prefix root bin pack ping'.split(' '))
const npmNamed = new Set(
  'test t tst run run-script start stop restart ls list ll la view info show v why explain fund search query help'.split(' '),
)

export function judgeNpm(use: Use, args: readonly Arg[]): string {
  const { judge, place } = use
  const parsed = parseOptions(beforeDashes(args), npmTable)
  checkOptions(use, parsed)
  const [word, ...rest] = parsed.operands
  const sub = sure(word) ?? ''
  const configReads = /^(config|c)$/.test(sub) && /^(get|list|ls)$/.test(sure(rest[0]) ?? 'list')
  noteRun(judge, [`${folderOf(parsed, /^(-C|--prefix)$/)}package.json`], place)
  const fine = onlyAsks(parsed) || (npmAlone.has(sub) && rest.length === 0) || npmNamed.has(sub) || configReads
  if (!fine) judge.raise('command.option', `npm ${sub} fetches, runs or changes more than the project declares`)
  if (!fine) judge.invoke(sub === 'exec' || sub === 'x' ? [...rest, ...afterDashes(args)] : [], place)
  if (args.some((arg) => arg.kind === 'unknown')) judge.raise('command.unclear', 'the arguments of npm are known only when it runs')
  for (const arg of args) checkLoose(judge, arg, 'write', place)
  return sub
}

function beforeDashes(args: readonly Arg[]): readonly Arg[] {
  const at = args.findIndex((arg) => sure(arg) === '--')
  return at < 0 ? args : args.slice(0, at)
}

function afterDashes(args: readonly Arg[]): readonly Arg[] {
  return args.slice(beforeDashes(args).length + 1)
}

const bunTable: OptionTable = {
  data: '-t --test-name-pattern --timeout --rerun-each --filter -F',
  read: '--cwd',
  exec: '-e --eval -p --print',
  refuse:
    '-r --preload --require --import -c --config --env-file -g --global --registry --cache-dir --shell --inspect --inspect-brk --define',
  flag: '--bun --smol --watch --hot --silent --coverage --frozen-lockfile --production --version --help --revision --only --todo --concurrent',
}

export function judgeBun(use: Use, args: readonly Arg[]): string {
  const { judge, place } = use
  const parsed = parseOptions(beforeDashes(args), bunTable)
  checkOptions(use, parsed)
  const [word, ...rest] = parsed.operands
  const sub = sure(word) ?? ''
  const script = sure(rest[0])
  const runsScript = sub === 'run' && script !== undefined && /^\w[\w:-]*$/.test(script)
  const alone = /^(install|i|ci|outdated|audit)$/.test(sub) && rest.length === 0
  const lists = sub === 'pm' && /^(ls|bin|hash|version|whoami)$/.test(script ?? '')
  noteRun(judge, [`${folderOf(parsed, /^--cwd$/)}package.json`], place)
  const fine = onlyAsks(parsed) || sub === 'test' || runsScript || alone || lists
  if (!fine) judge.raise('command.option', `bun ${sub.slice(0, 40)} runs or fetches more than the project's own scripts and tests`)
  if (!fine && sub === 'x') judge.invoke(rest, place)
  if (args.some((arg) => arg.kind === 'unknown')) judge.raise('command.unclear', 'the arguments of bun are known only when it runs')
  for (const arg of args) checkLoose(judge, arg, 'write', place)
  return sub
}

const makeTable: OptionTable = {
  data: '-o --old-file --assume-old -W --what-if --new-file --assume-new -l',
  read: '-C --directory -f --file --makefile -I --include-dir',
  exec: '-E --eval',
  attached: '-j -O',
  flag: '--jobs --keep-going --dry-run --silent --always-make --print-directory --no-print-directory --version --help --ignore-errors',
}

export function judgeMake(use: Use, args: readonly Arg[]): undefined {
  const { judge, place } = use
  const parsed = parseOptions(args, makeTable)
  checkOptions(use, parsed)
  const makefiles = parsed.options.filter((option) => /^(-f|--file|--makefile)$/.test(option.name))
  const named = makefiles.flatMap((option) => option.value?.texts ?? [])
  const folder = folderOf(parsed, /^(-C|--directory)$/)
  noteRun(
    judge,
    (named.length > 0 ? named : ['GNUmakefile', 'makefile', 'Makefile']).map((file) => folder + file),
    place,
  )
  if (makefiles.some((option) => (sure(option.value) ?? '-') === '-')) judge.raise('command.code', 'make runs what it reads from its input')
  if (parsed.options.some((option) => option.name === '-e'))
    judge.raise('command.option', 'make -e lets the environment decide which programs run')
  for (const word of parsed.operands) judgeMakeWord(use, word)
  for (const arg of args) if (arg.kind === 'glob') checkPath(judge, arg, 'read', place)
}

/** The folder that an option names, with a final slash; empty without one. */
function folderOf({ options }: ParsedOptions, name: RegExp): string {
  const folder = sure(options.findLast((option) => name.test(option.name))?.value)
  return folder === undefined ? '' : `${folder}/`
}

/** `npm --version`. */
function onlyAsks({ options, operands }: ParsedOptions): boolean {
  return operands.length === 0 && options.length > 0 && options.every(({ name }) => /^(--version|--help|--revision|-v|-h|-l)$/.test(name))
}

function judgeMakeWord({ judge, place }: Use, word: Arg): undefined {
  const text = sure(word)
  if (text === undefined) return judge.raise('command.unclear', 'the arguments of make are known only when it runs')
  const [, value] = /=(.*)$/s.exec(text) ?? []
  if (text.includes('$')) judge.raise('command.option', 'make expands $( ), which runs programs; leave it out')
  if (value !== undefined && !/^[A-Z_]+=(\d+|yes|no|y|n|true|false|on|off|debug|release|Debug|Release)$/.test(text)) {
    judge.raise('command.option', `make ${JSON.stringify(text.slice(0, 40))}: variables can name programs to run; leave it out`)
    judge.text(value.replace(/^=/, ''), place, { shared: false })
  }
  checkLoose(judge, word, 'read', place)
}
