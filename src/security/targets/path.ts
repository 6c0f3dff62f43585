/** Judges a path by its text alone; the workspace checks the opened file again, since only the kernel resolves symbolic links. */

import { attempt } from '../../kit/errors.ts'
import { folded, quote } from '../../kit/text.ts'
import type { Policy } from '../policy.ts'
import { type Refusal, refuse } from '../rules.ts'
import { isProtectedName } from './protected.ts'

export type Access = 'read' | 'write'

/**
 * `path` is absolute and normalised: open it instead of the given text. `relative` is from the workspace (`.` for the workspace itself),
 * absolute if outside.
 */
export type PathVerdict = { readonly ok: true; readonly path: string; readonly relative: string; readonly inside: boolean } | Refusal

/**
 * `sandboxed`: the paths are words of a command whose sandbox shows only the workspace, the system, and a /tmp, /dev and /etc of its own.
 */
export type PathPolicy = Pick<Policy, 'workspace' | 'workspaceOnly' | 'forbiddenPaths' | 'forbiddenReads' | 'protectedPaths' | 'home'> & {
  readonly sandboxed?: boolean
  readonly toolSettings?: Policy['toolSettings']
}

export type PathQuestion = { readonly path: string; readonly access: Access; readonly cwd: string; readonly policy: PathPolicy }

/** Pure; never throws and never looks at the disk, so existing and missing paths get the same message. */
export function judgePath(question: PathQuestion): PathVerdict {
  const place = absolute(question)
  const open = question.policy.sandboxed === true && !isUnder(place, question.policy.workspace)
  return malformed(question.path) ?? judgePlace({ ...question, place, here: folded(place), open })
}

/**
 * `here` is `place` in the folded form that the lists of locked names use (protected.ts). `open`: it is outside the workspace of a sandbox,
 * where only what is forbidden by name is refused.
 */
type ResolvedQuestion = PathQuestion & { readonly place: string; readonly here: string; readonly open: boolean }

function judgePlace(at: ResolvedQuestion): PathVerdict {
  const inside = isUnder(at.place, at.policy.workspace)
  const refusal =
    outside(at, inside) ?? forbidden(at) ?? kernel(at, inside) ?? protectedPlace(at, inside) ?? unread(at) ?? named(at, inside)
  return refusal ?? { ok: true, path: at.place, relative: relativeTo(at.place, at.policy.workspace, inside), inside }
}

function malformed(path: string): Refusal | undefined {
  if (path.trim() === '') return refuse('path.empty', `path: ${quote(path)} names nothing; use "." for the workspace itself`)
  if (!path.isWellFormed() || /[\p{Cc}\p{Bidi_Control}]/u.test(path))
    return refuse('path.bad_character', `path: ${quote(path)} holds a control or text-direction character; spell the name without it`)
  if (Buffer.byteLength(path) > 4096 || path.split('/').some((name) => Buffer.byteLength(name) > 255))
    return refuse('path.too_long', `path: ${quote(path)} is ${Buffer.byteLength(path)} bytes; 4096 are the limit, and 255 for each name`)
  if (path.startsWith('~') && path.length > 1 && path[1] !== '/')
    return refuse(
      'path.tilde_user',
      `path: ${quote(path)} begins with "~" and a name; write "./${path.slice(0, 40)}" if that is a file's name`,
    )
}

function outside({ path, policy, open }: ResolvedQuestion, inside: boolean): Refusal | undefined {
  if (inside || open || !policy.workspaceOnly) return
  return refuse('path.outside_workspace', `path: ${quote(path)} is outside the workspace ${policy.workspace}; use a path inside it`)
}

function forbidden(at: ResolvedQuestion): Refusal | undefined {
  const { path, policy } = at
  const entry = policy.forbiddenPaths.find((entry) => covers({ ...at, entry: forbiddenPlace(entry, policy) }))
  if (entry !== undefined) return refuse('path.forbidden', `path: ${quote(path)} is under the forbidden path ${entry}; work elsewhere`)
}

function unread({ path, policy, access, place }: ResolvedQuestion): Refusal | undefined {
  if (access !== 'read' || !policy.forbiddenReads?.length) return
  const pattern = forbiddenReads({ ...policy, patterns: policy.forbiddenReads })(place)
  if (pattern === undefined) return
  const why = `is a file that is not read (security.forbidden_reads: ${pattern}); work without its content, or ask the operator`
  return refuse('path.forbidden_read', `path: ${quote(path)} ${why}`)
}

/** The devices and standard streams that hold no data of the machine; /dev/shm is the /tmp of a sandbox. */
export function isDevice(path: string): boolean {
  return /^\/dev\/(?:null|zero|full|tty|u?random|std(?:in|out|err)|(?:fd|shm)(?:\/.*)?)$/.test(path)
}

/** A workspace may lie in /dev/shm and the like, so only paths outside the workspace are refused. For bash, /dev/tcp is a connection. */
function kernel({ path, place, access, open }: ResolvedQuestion, inside: boolean): Refusal | undefined {
  const isFile = isDevice(place) || (access === 'read' && !/^\/dev\/(?:tcp|udp)\//.test(place))
  if (inside || (open && isFile) || !['/proc', '/sys', '/dev'].some((root) => isUnder(place, root))) return
  return refuse('path.kernel', `path: ${quote(path)} is a kernel interface, not a file; use a regular file`)
}

/** A protected folder that contains the workspace does not lock the workspace; it still locks everything else in that folder. */
function protectedPlace(at: ResolvedQuestion, inside: boolean): Refusal | undefined {
  const { path, policy } = at
  const locks = (entry: string) => !(inside && entry !== policy.workspace && isUnder(policy.workspace, entry))
  const entry = policy.protectedPaths.find((entry) => locks(entry) && covers({ ...at, entry }))
  if (entry !== undefined) return refuse('path.protected', `path: ${quote(path)} belongs to BraidClaw itself; tools never touch it`)
}

/**
 * A workspace that lies below such a name (a checkout in .config/fish) must stay usable: inside it, only the remaining names are checked.
 */
function named({ path, policy, access, place, open }: ResolvedQuestion, inside: boolean): Refusal | undefined {
  if (access === 'read' || open || !isProtectedName(inside ? relativeTo(place, policy.workspace, inside) : place)) return
  return refuse('path.protected', `path: ${quote(path)} is run or obeyed by other programs; ask the operator to change it by hand`)
}

/**
 * Writing a folder (moving, replacing, deleting it) also writes everything below, except for the workspace itself, into which files are
 * copied.
 */
function covers({ entry, place, here, access, policy, open }: ResolvedQuestion & { entry: string }): boolean {
  const lock = folded(entry)
  if (open) return lock !== '/etc' && (isUnder(here, lock) || isMatched(place, entry))
  return isUnder(here, lock) || (access === 'write' && place !== policy.workspace && isUnder(lock, here) && here !== '/')
}

/** The pattern matches the folder, or something in it. Only a pattern that begins with a dot matches such a name. */
function isMatched(pattern: string, folder: string): boolean {
  const names = pattern.split('/')
  const fits = (name: string, part = '') => matchesPattern(part, name) && part.startsWith('.') === name.startsWith('.')
  return /[*?[]/.test(pattern) && folder.split('/').every((name, at) => fits(name, names[at]))
}

/** Tells whether a file name may match a shell pattern. An unclosed set is literal text; an invalid set matches every name. */
export function matchesPattern(pattern: string, name: string): boolean {
  const source = pattern.replace(/\[([!^]?)([^\]]+)\]|[^\w]/g, (char, not: string | undefined, set: string | undefined) => {
    if (set !== undefined) return `[${not ? '^' : ''}${set.replace(/[\\^]/g, '\\$&')}]`
    return char === '*' ? '.*' : char === '?' ? '.' : RegExp.escape(char)
  })
  return attempt(() => new RegExp(`^${source}$`).test(name)) ?? true
}

/** @returns an entry of `forbiddenPaths` as an absolute path */
export function forbiddenPlace(entry: string, policy: Pick<PathPolicy, 'home' | 'workspace'>): string {
  return absolute({ path: entry, cwd: policy.workspace, policy })
}

type Spelt = Pick<PathQuestion, 'path' | 'cwd'> & { readonly policy: Pick<PathPolicy, 'home' | 'workspace'> }

function absolute(spelt: Spelt): string {
  return normalise(placeAsSpelt(spelt))
}

/** Absolute, but keeps every `..`: after a link, `..` leads to another place than the text suggests. */
export function placeAsSpelt({ path, cwd, policy }: Spelt): string {
  if (path === '~' || path.startsWith('~/')) return `${policy.home}/${path.slice(1)}`
  if (path.startsWith('/')) return path
  return cwd.startsWith('/') ? `${cwd}/${path}` : `${policy.workspace}/${cwd}/${path}`
}

/** Resolves `.` and `..` of an absolute path by the text alone. */
export function normalise(path: string): string {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}

/** Tells whether a normalised path is the folder or lies below it, compared by whole names. */
export function isUnder(path: string, folder: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`)
}

function relativeTo(place: string, workspace: string, inside: boolean): string {
  if (!inside) return place
  return place.slice(workspace === '/' ? 1 : workspace.length + 1) || '.'
}

/** Recognises files that no tool and no command may read, by the patterns of the operator. */
export type ReadQuestion = {
  /** Patterns such as those of .gitignore: a later one overrides an earlier one, and "!" makes an exception. */
  readonly patterns: readonly string[]
  readonly workspace: string
  readonly home: string
}

/** @returns a function from an absolute, normalised path to the pattern that forbids reading it */
export function forbiddenReads({ patterns, workspace, home }: ReadQuestion): (path: string) => string | undefined {
  const sources = patterns.map((pattern) => source(globOf(pattern, home)))
  const forbidding = sources.filter((_, at) => !isException(patterns[at] ?? ''))
  if (forbidding.length === 0) return () => undefined
  // Nearly all paths match nothing: one expression tells that, at a tenth of the cost of one for each pattern.
  const any = expression(`(?:${forbidding.join('|')})`)
  const state: { each?: readonly RegExp[] } = {}
  return (path) => {
    const relative = path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : undefined
    const matches = (regex: RegExp) => regex.test(path) || (relative !== undefined && regex.test(relative))
    if (!matches(any)) return undefined
    state.each ??= sources.map(expression)
    const found = patterns[state.each.findLastIndex(matches)]
    return found === undefined || isException(found) ? undefined : found
  }
}

function isException(pattern: string): boolean {
  return pattern.startsWith('!')
}

/** Letters of both cases match, because some file systems open either. */
function expression(text: string): RegExp {
  return new RegExp(`^${text}$`, 'iu')
}

/** A pattern without a slash means a name in any folder. */
function globOf(pattern: string, home: string): string {
  const bare = isException(pattern) ? pattern.slice(1) : pattern
  return bare.startsWith('~/') ? `${home}/${bare.slice(2)}` : bare.includes('/') ? bare.replace(/^\.\//, '') : `**/${bare}`
}

function source(glob: string): string {
  return glob.replace(/\*\*\/|\*\*|[*?]|[^\w/*?-]/gu, (piece) => {
    if (piece === '**/') return '(?:.*/)?'
    if (piece === '**') return '.*'
    if (piece === '*') return '[^/]*'
    return piece === '?' ? '[^/]' : `\\u{${piece.codePointAt(0)?.toString(16)}}`
  })
}
