/** Passes arguments that name files to the path gate, for every directory in which the command may run. */

import { isDevice } from '../../targets/path.ts'
import { isForbidden } from './destructive.ts'
import { type Arg, basename, HOLE, type JudgeContext, literalArg, resolvePath, sure, type WalkState } from './model.ts'

/** `run` is the path of a program to execute. */
export type FileAccess = 'read' | 'write' | 'run'

/** `/dev/null` and the standard streams are allowed as the target of a redirection; a device that keeps nothing is also an operand, in a sandbox. */
export function checkPath(
  judge: JudgeContext,
  arg: Arg,
  access: FileAccess,
  place: WalkState,
  target: 'operand' | 'redirection' = 'operand',
): void {
  for (const text of arg.texts) {
    if (target === 'redirection' && /^\/dev\/(null|stdout|stderr|stdin|fd\/\d+)$/.test(text) && arg.kind === 'literal') continue
    const keepsNothing = judge.policy.sandboxed && arg.kind === 'literal' && isDevice(text) && !text.startsWith('/dev/shm')
    if (access === 'write' && !keepsNothing) judge.found.acts = true
    checkText(judge, text, { arg, access: keepsNothing ? 'read' : access, place })
  }
  if (arg.kind === 'unknown')
    judge.raise('command.unclear', `which path ${shown(arg)} is, is known only when it runs; name the path itself`)
  if (arg.kind === 'glob') checkPattern(judge, arg)
  if (access === 'write' && (arg.kind === 'glob' || arg.kind === 'name')) checkHidden(judge, arg, place)
}

function checkText(judge: JudgeContext, text: string, { arg, access, place }: { arg: Arg; access: FileAccess; place: WalkState }): void {
  if (text === '') return
  const path = text.replaceAll(HOLE, 'x')
  // A copy of a forbidden program, or a link to it, would run it under another name.
  if (judge.policy.sandboxed && /^\/(?:.*\/)?s?bin\/[^/]+$/.test(path) && isForbidden(basename(path), judge.policy.forbidden))
    judge.block('command.forbidden', `${path} is the program of one of forbidden_commands; work without it`)
  if (!place.cwds && !path.startsWith('/'))
    judge.raise('command.unclear', `in which directory ${shown(arg)} is, is known only when it runs`)
  // Where the folder is unknown, a `cd ..` or `cd -` may have left the workspace.
  const above = judge.policy.cwd.split('/').map((_, at, names) => names.slice(0, at + 1).join('/'))
  for (const cwd of place.cwds ?? (judge.policy.sandboxed ? above.slice(1) : [judge.policy.cwd])) {
    const verdict = judge.policy.path(path, access, cwd)
    if (!verdict.ok) judge.block(verdict.rule, verdict.reason)
    else if (access === 'write' && arg.kind === 'literal') judge.found.writes.add(resolvePath(path, cwd))
    const without = text.replaceAll(HOLE, '')
    if (without === path || without === '' || judge.policy.path(without, access, cwd).ok) continue
    judge.raise('command.unclear', `${shown(arg)} could be ${JSON.stringify(without)} when its first part is empty; name the path itself`)
  }
}

/** A pattern must not match names that the gate would refuse if they were spelled out. */
function checkPattern(judge: JudgeContext, arg: Arg): void {
  for (const text of arg.texts) {
    const names = text.split('/')
    if (names.some((name) => /^\.[^/]*[*?[]/.test(name)))
      judge.raise('command.unclear', `the pattern ${shown(arg)} could match protected names; name the files`)
  }
}

/** Git, shells and editors obey files whose name, or whose folder's name, begins with a dot; a write there must name its file. */
function checkHidden(judge: JudgeContext, arg: Arg, { cwds }: WalkState): void {
  const { cwd: workspace } = judge.policy
  const places = (cwds ?? [workspace]).flatMap((cwd) => arg.texts.map((text) => resolvePath(text, cwd)))
  const open = places.filter((place) =>
    /\/\.[^/]*(\/.*)?[*?[\u{F8FF}]/u.test(place.startsWith(`${workspace}/`) ? place.slice(workspace.length) : place),
  )
  if (open.length > 0) judge.raise('command.unclear', `${shown(arg)} could be a protected name; name the files`)
}

/** Judges tools without a rule: passes every argument that looks like an absolute path, a home path or a path with `..` to the gate. */
export function checkLoose(judge: JudgeContext, arg: Arg, access: FileAccess, place: WalkState): void {
  const texts = arg.texts.filter(looksLikePath)
  if (texts.length > 0) checkPath(judge, { ...arg, texts, kind: arg.kind === 'unknown' ? 'name' : arg.kind }, access, place)
}

/** Notes the files of these texts as what the command would run. */
export function noteRun(judge: JudgeContext, texts: readonly string[], { cwds }: WalkState): void {
  for (const cwd of cwds ?? [judge.policy.cwd])
    for (const text of texts) if (!text.includes(HOLE)) judge.found.runs.add(resolvePath(text, cwd))
}

export function looksLikePath(text: string): boolean {
  return /^(\/|~(\/|$))|^\.\.$|(^|\/)\.\.\/|\/\.\.$/.test(text)
}

export function shown(arg: Arg): string {
  return JSON.stringify((arg.texts[0] ?? '').replaceAll(HOLE, '…').slice(0, 60))
}

/**
 * `ln -s TARGET LINK` means its target from the folder of the link. @returns the arguments, with that target as a path from the working
 * directory
 */
export function linkOperands(args: readonly Arg[]): readonly Arg[] {
  const [target, link, ...more] = args.filter((arg) => !sure(arg)?.startsWith('-'))
  const [text, place] = [target && sure(target), link && sure(link)]
  const isSymbolic = args.some((arg) => /^(?:-[a-zA-Z]*s[a-zA-Z]*|--symbolic)$/.test(sure(arg) ?? ''))
  const plain = args.every(
    (arg) => !/^-/.test(sure(arg) ?? '') || /^(?:-[sfnTv]+|--symbolic|--force|--no-dereference)$/.test(sure(arg) ?? ''),
  )
  if (!isSymbolic || !plain || more.length > 0 || text === undefined || place === undefined || /^[/~]/.test(text)) return args
  const folder = place.slice(0, place.lastIndexOf('/') + 1)
  return args.map((arg) => (arg === target ? literalArg(folder + text) : arg))
}
