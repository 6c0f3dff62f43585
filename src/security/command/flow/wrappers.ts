/** Unwraps commands that run the command in their arguments, and judges the inner command. */

import { isHarmlessSetting, isRefusedName } from '../names.ts'
import { type Arg, anyFeed, type CommandOutcome, HOLE, type JudgeContext, literalArg, sure, type WalkState, widest } from './model.ts'
import { type Option, type OptionTable, parseOptions } from './options.ts'
import { wordsOf } from './output.ts'
import { checkPath, shown } from './paths.ts'
import { joinedTexts, searchSettings, searchTexts } from './search.ts'

type Wrapper = OptionTable & {
  /** Number of operands before the inner command. */
  readonly skips?: number
  readonly high?: string
}

const wrappers: { readonly [name: string]: Wrapper } = {
  exec: { data: '-a', refuse: '-c' },
  builtin: {},
  nice: { data: '-n --adjustment' },
  nohup: {},
  timeout: { data: '-s --signal -k --kill-after', skips: 1 },
  stdbuf: { data: '-i -o -e --input --output --error' },
  setsid: {},
  ionice: { data: '-c -n --class --classdata', refuse: '-p -P -u --pid --pgid --uid' },
  chrt: { skips: 1, refuse: '-p --pid' },
  taskset: { skips: 1, refuse: '-p --pid' },
  time: { data: '-f --format', write: '-o --output' },
  busybox: { refuse: '--install --list-full' },
  toybox: {},
  sudo: {
    data: '-u --user -g --group -h --host -p --prompt -C --close-from -T --command-timeout -U --other-user -r --role -t --type',
    read: '-D --chdir -R --chroot',
    high: 'sudo',
  },
  doas: { data: '-u', read: '-C', high: 'doas' },
}

export function isWrapper(name: string): boolean {
  return Object.hasOwn(wrappers, name) || /^(env|command|xargs|gxargs|flock|watch)$/.test(name)
}

export function unwrap(judge: JudgeContext, name: string, args: readonly Arg[], around: WalkState): CommandOutcome {
  const place = { ...around, external: true }
  if (name === 'env') return unwrapEnv(judge, args, place)
  if (name === 'command' && args.some((arg) => /^-[pvV]*[vV]$/.test(sure(arg) ?? '')) && sure(args[0])?.startsWith('-'))
    return { output: { ...anyFeed, text: sure(args.at(-1)) ?? '' } }
  if (name === 'command') return unwrapPlain(judge, name, { args, wrapper: {}, place })
  if (name === 'xargs' || name === 'gxargs') return unwrapXargs(judge, args, place)
  if (name === 'flock') return unwrapFlock(judge, args, place)
  if (name === 'watch') return unwrapWatch(judge, args, place)
  const wrapper = wrappers[name]
  return wrapper ? unwrapPlain(judge, name, { args, wrapper, place }) : {}
}

type Wrapped = { readonly args: readonly Arg[]; readonly wrapper: Wrapper; readonly place: WalkState }

function unwrapPlain(judge: JudgeContext, name: string, { args, wrapper, place }: Wrapped): CommandOutcome {
  if (wrapper.high) judge.raise('command.privilege', `${wrapper.high} runs a command with the rights of another user`)
  const inner = afterOptions(judge, name, { args, wrapper, place })
  return judge.invoke(wrapper.high ? withoutSettings(inner) : inner, place)
}

/** `sudo NAME=value command`. */
function withoutSettings(args: readonly Arg[]): readonly Arg[] {
  const first = args.findIndex((arg) => !/^[A-Za-z_]\w*=/.test(sure(arg) ?? ''))
  return first < 0 ? [] : args.slice(first)
}

function afterOptions(judge: JudgeContext, name: string, { args, wrapper, place }: Wrapped): readonly Arg[] {
  const { options, operands, unclear } = parseOptions(args, wrapper, { inOrder: true })
  if (unclear) abbreviated(judge, name, unclear)
  for (const { meaning, value, name: option } of options) {
    if (meaning === 'refuse') judge.raise('command.option', `${name} ${option} does more than run a command`)
    if ((meaning === 'read' || meaning === 'write') && value) checkPath(judge, value, meaning, place)
  }
  const skipped = operands.slice(0, wrapper.skips ?? 0)
  if (skipped.some((arg) => arg.kind !== 'literal' && arg.kind !== 'number'))
    judge.raise('command.dynamic', `which command ${name} runs is known only when it runs`)
  return operands.slice(wrapper.skips ?? 0)
}

function abbreviated(judge: JudgeContext, name: string, option: Arg): void {
  judge.raise('command.option', `${name} ${shown(option)} is not spelled out; write the whole option`)
}

/** `-S` splits its text into a command; `-C` changes directory; assignments come first. */
function unwrapEnv(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  const { options, operands, unclear } = parseOptions(
    args,
    { data: '-u --unset -S --split-string -a --argv0', read: '-C --chdir' },
    { inOrder: true },
  )
  if (sure(operands[0]) === '-' || options.some((option) => /^(-i|--ig(?!nore-s).*)$/.test(option.name)))
    judge.raise('command.environment', 'env -i also takes away what keeps programs careful; leave it out')
  if (unclear) abbreviated(judge, 'env', unclear)
  const split = options.find((option) => /^(-S|--split-string)$/.test(option.name))
  const folder = options.find((option) => /^(-C|--chdir)$/.test(option.name))?.value
  if (folder) checkPath(judge, folder, 'read', place)
  for (const option of options) if (/^(-u|--unset)$/.test(option.name)) checkSetting(judge, `${sure(option.value) ?? 'PATH'}=`)
  // A lone dash means -i.
  const commands = sure(operands[0]) === '-' ? operands.slice(1) : operands
  const first = commands.findIndex((arg) => !/^[^=]+=/.test(sure(arg) ?? '') && !arg.texts.every((text) => /^\w+=/.test(text)))
  const settings = first < 0 ? commands : commands.slice(0, first)
  for (const arg of settings) checkSetting(judge, arg.texts[0] ?? '')
  searchSettings(
    judge,
    settings.flatMap(({ texts }) => texts),
    place,
  )
  const inside = { ...place, cwds: folder ? moved(place, folder) : place.cwds }
  if (split) return splitString(judge, split.value, { rest: commands, place: inside })
  if (first < 0) judge.raise('command.not_allowed', 'env alone prints the environment; name the variable with echo')
  return first < 0 ? {} : judge.invoke(commands.slice(first), inside)
}

function moved(place: WalkState, folder: Arg): WalkState['cwds'] {
  const text = sure(folder)
  return text === undefined ? undefined : place.cwds?.map((cwd) => (text.startsWith('/') ? text : `${cwd}/${text}`))
}

function checkSetting(judge: JudgeContext, setting: string): void {
  const [name = '', value = ''] = setting.split(/=(.*)/s)
  if (isRefusedName(name) && !isHarmlessSetting(name, value))
    judge.raise('command.environment', `${name} decides which programs run or how; leave it out`)
}

function splitString(
  judge: JudgeContext,
  value: Arg | undefined,
  { rest, place }: { rest: readonly Arg[]; place: WalkState },
): CommandOutcome {
  const text = value && sure(value)
  if (text === undefined || !/^[\w ./=,:@%+-]*$/.test(text)) {
    judge.raise('command.code', 'env -S splits its text by rules of its own; give the command as separate words')
    searchTexts(judge, value?.texts ?? [], place)
    return {}
  }
  const words = text
    .split(/ +/)
    .filter(Boolean)
    .map((word) => literalArg(word))
  return unwrapEnv(judge, [...words, ...rest], place)
}

const xargsTable: OptionTable = {
  data: '-I -n -P -L -s -d -E --max-args --max-procs --max-chars --delimiter --process-slot-var',
  read: '-a --arg-file',
  attached: '-i -e -l',
}

function unwrapXargs(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  const { options, operands, unclear } = parseOptions(args, xargsTable, { inOrder: true })
  if (unclear) abbreviated(judge, 'xargs', unclear)
  const file = options.find((option) => /^(-a|--arg-file)$/.test(option.name))?.value
  if (file) checkPath(judge, file, 'read', place)
  const given = (pattern: RegExp) => options.some((option) => pattern.test(option.name))
  if (given(/^(-p|--i.*)$/)) judge.raise('command.option', 'xargs -p asks at a terminal')
  const mark = options.findLast((option) => /^(-I|-i|--r.*)$/.test(option.name))
  if (mark && options.slice(options.indexOf(mark)).some(counts))
    judge.raise('command.option', 'xargs forgets what it is to replace where -n or -L comes later; leave that out')
  // A file name can contain any character except NUL, so a name split at another character may begin with any text.
  const led = place.feed.led === true && given(/^(-0|--nu.*)$/) && !given(/^(-d|--d.*)$/)
  const replaced = mark ? (mark.value ? (sure(mark.value) ?? '{}') : '{}') : undefined
  const { kind, downloads } = place.feed
  const divided = given(/^(-0|--nu.*|-d|--d.*)$/)
  const unread = { ...unknownWord(), kind: kind === 'name' || kind === 'number' ? kind : ('unknown' as const), downloads, led }
  const fed = file ? [unknownWord()] : ((divided ? undefined : wordsOf(place.feed)) ?? [unread])
  const inner = operands.length > 0 ? operands : [literalArg('echo')]
  const inside = { ...place, feed: { ...place.feed, kind: 'none' as const } }
  const lines = !file && kind === 'literal' ? ((divided ? undefined : linesOf(place.feed.text)) ?? [unread]) : fed
  return judge.invoke(replaced === undefined ? [...inner, ...fed] : inner.map((arg) => filled(arg, replaced, lines)), inside)
}

/** Tells whether the option limits arguments or lines in a way that excludes a replacement mark: only one at a time works with it. */
function counts({ name, value }: Option): boolean {
  return /^(-L|-l|--max-l.*)$/.test(name) || (/^(-n|--max-a.*)$/.test(name) && sure(value) !== '1')
}

function unknownWord(): Arg {
  return { ...literalArg(HOLE), kind: 'unknown', fixed: false, vanishes: true, several: true }
}

/** With `-I`, each line is one argument after its quotes are removed; undefined where the lines have quotes or are too many. */
function linesOf(text: string): readonly Arg[] | undefined {
  const lines = text.split('\n').flatMap((line) => line.trim() || [])
  return /['"\\\0]/.test(text) || lines.length > 16 ? undefined : [{ ...literalArg(''), texts: lines, fixed: false }]
}

function filled(arg: Arg, mark: string, fed: readonly Arg[]): Arg {
  if (!arg.texts.some((text) => text.includes(mark))) return arg
  const [only, ...more] = fed
  if (only && more.length === 0 && only.kind !== 'unknown')
    return {
      ...only,
      texts: arg.texts.flatMap((text) => only.texts.map((part) => text.replaceAll(mark, part))),
      kind: widest(arg.kind, only.kind),
      downloads: arg.downloads || only.downloads,
      led: only.led === true && arg.texts.every((text) => text.startsWith(mark)),
      fixed: false,
    }
  return { ...arg, texts: arg.texts.map((text) => text.replaceAll(mark, HOLE)), kind: 'unknown', fixed: false }
}

function unwrapFlock(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  const { operands, unclear } = parseOptions(args, { data: '-w --timeout --wait -E --conflict-exit-code' }, { inOrder: true })
  if (unclear) abbreviated(judge, 'flock', unclear)
  const [lock, flag, text] = operands
  if (lock && !/^\d+$/.test(sure(lock) ?? '')) checkPath(judge, lock, 'write', place)
  if (!/^(-c|--command)$/.test(sure(flag) ?? '')) return operands.length > 1 ? judge.invoke(operands.slice(1), place) : {}
  return judge.invoke([literalArg('sh'), literalArg('-c'), text ?? unknownWord()], place)
}

/** Without `-x`, watch joins the words and passes them to a shell; only plain words stay the same. */
function unwrapWatch(judge: JudgeContext, args: readonly Arg[], place: WalkState): CommandOutcome {
  const { options, operands, unclear } = parseOptions(
    args,
    { data: '-n --interval -q --equexit', refuse: '--shotsdir -s' },
    { inOrder: true },
  )
  if (unclear) abbreviated(judge, 'watch', unclear)
  const plain =
    options.some((option) => /^(-x|--exec)$/.test(option.name)) || operands.every((arg) => /^[\w./@%+=:,-]+$/.test(sure(arg) ?? ''))
  if (plain) return judge.invoke(operands, place)
  judge.raise('command.code', 'watch gives its words to a shell; use watch -x')
  searchTexts(judge, joinedTexts(operands), place)
  return {}
}
