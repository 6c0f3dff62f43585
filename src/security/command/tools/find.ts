/** Judges find: its starting folders, the files that its tests look at, and the commands that it runs on its results. */

import { everythingIn, isForbidden } from '../flow/destructive.ts'
import { type Arg, HOLE, literalArg, scatters, sure } from '../flow/model.ts'
import { checkPath, shown } from '../flow/paths.ts'
import type { Use } from './rule.ts'

const takesData = new Set(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -perm -size -user -group -uid -gid -mtime -atime -ctime -mmin -amin -cmin -maxdepth -mindepth -regextype -fstype -inum -links -used -printf -context'.split(
    ' ',
  ),
)
const takesFile = /^-(newer(?!..$)|newer[aBcm][aBcm]|anewer|cnewer|samefile)$/
const writesFile = new Set('-fprint -fprint0 -fls -fprintf'.split(' '))
const runs = new Set('-exec -execdir -ok -okdir'.split(' '))

export function judgeFind(use: Use, args: readonly Arg[]): undefined {
  const first = args.findIndex((arg, index) => !isLeadingOption(arg, args[index - 1]) && startsExpression(arg))
  const starts = args.slice(0, first < 0 ? args.length : first).filter((arg, index, all) => !isLeadingOption(arg, all[index - 1]))
  for (const start of starts) {
    checkPath(use.judge, start, 'read', use.place)
    if (start.kind === 'glob' && !scatters(start)) for (const word of start.globs) use.judge.found.dotted.add(word)
    else if (start.kind !== 'literal' && start.kind !== 'number') guardStart(use, start)
  }
  if (first < 0) return
  judgeExpression(use, args.slice(first))
  if (!removesAll(args.slice(first).map((arg) => sure(arg) ?? ''))) return
  const whole = everythingIn(starts.length > 0 ? starts : [literalArg('.')], { ...use.judge.policy, cwds: use.place.cwds })
  const reason = `find ${whole} would remove everything there; name a folder, or the files with -name`
  if (whole !== undefined) use.judge.block('command.destructive', reason)
}

/** Tells whether it removes files and no test excludes any; with `-o` or after `!` a test may also add files. */
function removesAll(words: readonly string[]): boolean {
  if (!words.some((word, at) => word === '-delete' || (runs.has(word) && /^(.*\/)?rm$/.test(words[at + 1] ?? '')))) return false
  const isTest = (word: string, at: number) => {
    const takes = takesFile.test(word) || (takesData.has(word) && !/^-(type|xtype|maxdepth|mindepth|regextype|printf)$/.test(word))
    return (word === '-empty' || (takes && !/^[*./]*$/.test(words[at + 1] ?? ''))) && !/^(!|-not)$/.test(words[at - 1] ?? '')
  }
  return words.some((word) => /^(-o|-or|,)$/.test(word)) || !words.some(isTest)
}

function isLeadingOption(arg: Arg, before: Arg | undefined): boolean {
  return /^-([HLP]|O\d|D)$/.test(sure(arg) ?? '') || sure(before ?? arg) === '-D'
}

function startsExpression(arg: Arg): boolean {
  return arg.texts.some((text) => /^(-.|[(!,]$)/.test(text))
}

function guardStart({ judge }: Use, start: Arg): void {
  if (/^\u{F8FF}/u.test(start.texts[0] ?? '') || scatters(start))
    judge.raise('command.option', `find could take ${shown(start)} for a test or an action; quote it, and put ./ before it`)
}

function judgeExpression(use: Use, args: readonly Arg[]): void {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]
    const word = arg && sure(arg)
    if (word === undefined) use.judge.raise('command.unclear', 'which test or action find is given is known only when it runs')
    else if (takesData.has(word)) at++
    else if (takesFile.test(word)) check(use, args[++at], word)
    else if (writesFile.has(word)) at = writes(use, args, at)
    else if (runs.has(word)) at = judgeExec(use, args, at)
    else if (word === '-delete') deletes(use)
    else if (word === '-files0-from') use.judge.raise('command.option', 'find -files0-from takes its folders from a file')
    else if (!/^(-[a-zA-Z]\w*|[(),!]|--)$/.test(word))
      use.judge.raise('command.option', `find does not know ${JSON.stringify(word.slice(0, 40))}`)
  }
}

function check({ judge, place }: Use, arg: Arg | undefined, word: string): void {
  if (arg && !/t$/.test(word)) checkPath(judge, arg, 'read', place)
}

function writes({ judge, place }: Use, args: readonly Arg[], at: number): number {
  const file = args[at + 1]
  judge.raise('command.option', `find ${sure(args[at])} writes a file; use > instead`)
  if (file) checkPath(judge, file, 'write', place)
  return at + (sure(args[at]) === '-fprintf' ? 2 : 1)
}

/** Blocks `-delete` where rm is forbidden, because it removes as much. */
function deletes({ judge }: Use): void {
  const reason = 'find -delete removes what it finds, which forbidden_commands rules out; use the tool file_delete'
  if (isForbidden('rm', judge.policy.forbidden)) judge.block('command.forbidden', reason)
  judge.raise('command.option', 'find -delete removes what it finds; list the files first')
}

function found(): Arg {
  return { ...literalArg(HOLE), kind: 'name', fixed: false, led: true }
}

function judgeExec({ judge, place }: Use, args: readonly Arg[], at: number): number {
  const length = args.slice(at).findIndex((arg, index) => sure(arg) === ';' || (sure(arg) === '+' && sure(args[at + index - 1]) === '{}'))
  const end = length < 0 ? args.length : at + length
  const inner = args.slice(at + 1, end).map((arg) => (arg.texts.some((text) => text.includes('{}')) ? withFound(arg) : arg))
  if (length < 0) judge.raise('command.unclear', `find ${sure(args[at])} has no end`)
  judge.invoke(inner, { ...place, feed: { ...place.feed, kind: 'none' }, external: true })
  return end
}

function withFound(arg: Arg): Arg {
  return {
    ...found(),
    texts: arg.texts.map((text) => text.replaceAll('{}', HOLE)),
    kind: arg.kind === 'unknown' ? 'unknown' : 'name',
    led: arg.texts.every((text) => text.startsWith('{}')),
  }
}
