/** Says of a skill, before anybody uses it, what it may do, what in it is suspicious, and what breaks the format of agentskills.io. */

import { posix } from 'node:path'
import { grouped, quote } from '../../kit/text.ts'
import { judgeCommand } from '../../security/command/judge.ts'
import { defaultAllow } from '../../security/command/names.ts'
import { isProtectedName } from '../../security/targets/protected.ts'
import { extractMarkdownLinks, isExternalLink } from '../markdown-links.ts'
import type { Skill } from '../skill-files.ts'
import { signsIn } from './signs.ts'

/** `content` has at most the first 256 KiB of a file, or the target of a link; `size` is that of the whole file. */
export type SkillFile = {
  readonly path: string
  readonly kind: 'file' | 'program' | 'link'
  readonly size: number
  readonly content: Uint8Array
}

/** `line` counts from 1; 0 where the finding is about the whole file. */
export type SkillFinding = { readonly rule: string; readonly path: string; readonly line: number; readonly why: string }

export type SkillReview = {
  /** Sorted: the files that can run, the programs and hosts that its commands name, and the paths outside of the skill and the project. */
  readonly does: { readonly [what in 'scripts' | 'programs' | 'hosts' | 'outside' | 'tools']: readonly string[] }
  /** A person should look at these; an honest skill may have some. */
  readonly suspicious: readonly SkillFinding[]
  readonly faults: readonly SkillFinding[]
}

type Notes = {
  readonly programs: Set<string>
  readonly hosts: Set<string>
  readonly outside: Set<string>
  readonly scripts: Set<string>
  readonly suspicious: SkillFinding[]
}

const mostFindings = 100
const mostCommands = 200
const mostCode = 32_768
const scriptName = /\.(?:sh|bash|zsh|py|rb|pl|js|mjs|cjs|ts|php|lua|ps1|bat|cmd)$/i

/** Pure; runs nothing. `skill` is the parsed SKILL.md, or why it cannot be read. */
export function reviewSkill(skill: Skill | string, files: readonly SkillFile[]): SkillReview {
  const notes: Notes = { programs: new Set(), hosts: new Set(), outside: new Set(), scripts: new Set(), suspicious: [] }
  for (const file of files) reviewFile(file, notes)
  const tools = typeof skill === 'string' ? [] : (skill.skill.allowedTools ?? [])
  if (tools.some((tool) => /^\W*\*/.test(tool)))
    notes.suspicious.push({ rule: 'tools', path: 'SKILL.md', line: 0, why: 'allowed-tools names every tool; list those that it needs' })
  const { programs, hosts, outside, scripts } = notes
  const sorted = (set: ReadonlySet<string>) => [...set].toSorted()
  return {
    does: { scripts: sorted(scripts), programs: sorted(programs), hosts: sorted(hosts), outside: sorted(outside), tools },
    suspicious: distinct(notes.suspicious),
    faults: faultsOf(skill, files),
  }
}

/** Keeps one finding of a rule for each line. */
function distinct(findings: readonly SkillFinding[]): readonly SkillFinding[] {
  const byPlace = new Map(findings.toReversed().map((finding) => [`${finding.path}\0${finding.line}\0${finding.rule}`, finding]))
  const sorted = [...byPlace.values()].sort((a, z) => (a.path === z.path ? a.line - z.line : a.path < z.path ? -1 : 1))
  return sorted.slice(0, mostFindings)
}

function faultsOf(skill: Skill | string, files: readonly SkillFile[]): readonly SkillFinding[] {
  const fault = (why: string): SkillFinding => ({ rule: 'format', path: 'SKILL.md', line: 0, why })
  if (typeof skill === 'string') return [fault(skill)]
  const { body, warnings, skill: facts } = skill
  const paths = new Set(files.map(({ path }) => path))
  const links = extractMarkdownLinks(body).flatMap(({ relativePath }) => {
    const path = posix.normalize(relativePath.replace(/[?#].*$/s, ''))
    const isMissing = path !== '.' && !path.startsWith('..') && !path.startsWith('/') && !paths.has(path)
    return isMissing && ![...paths].some((one) => one.startsWith(`${path.replace(/\/$/, '')}/`)) ? [path] : []
  })
  return [
    ...warnings.map(fault),
    ...(body === '' ? [fault('it has no instructions below the front matter')] : []),
    ...(body.split('\n').length > 500 ? [fault('it should have at most 500 lines; move details into references/')] : []),
    ...((facts.compatibility?.length ?? 0) > 500 ? [fault('compatibility should have at most 500 characters')] : []),
    ...links.map((path) => fault(`it links to ${quote(path)}, which does not exist`)),
  ]
}

/** The first bytes of pictures, documents and fonts by extension; other content that is not text is suspicious. */
const media: { readonly [extension: string]: string } = {
  png: '\x89PNG\r\n\x1a\n',
  jpg: '\xff\xd8\xff',
  jpeg: '\xff\xd8\xff',
  gif: 'GIF8',
  webp: 'RIFF',
  pdf: '%PDF-',
  woff: 'wOFF',
  woff2: 'wOF2',
  ttf: '\0\x01\0\0',
  ico: '\0\0\x01\0',
}

function reviewFile({ path, kind, size, content }: SkillFile, notes: Notes): void {
  const note = (rule: string, why: string, line = 0) => void notes.suspicious.push({ rule, path, line, why })
  const bytes = Buffer.from(content)
  if (kind === 'link') {
    const target = bytes.toString()
    if (leadsOut(path, target)) note('link', `the link leads to ${quote(target)}, out of the skill`)
    return
  }
  const extension = path.split('.').at(-1)?.toLowerCase() ?? ''
  const form = Object.hasOwn(media, extension) ? media[extension] : undefined
  const isMedia = form !== undefined && bytes.toString('latin1', 0, form.length) === form
  if (isMedia && kind === 'file') return
  if (form !== undefined && !isMedia) note('binary', `its name ends in .${extension}, and its content is something else`)
  if (bytes.includes(0)) {
    note('binary', 'it is a program or an archive that cannot be read')
    return
  }
  if (size > content.length) note('long', `only the first ${grouped(content.length)} of ${grouped(size)} bytes were looked at`)
  const text = bytes.toString()
  if (kind === 'program' || scriptName.test(path) || text.startsWith('#!')) notes.scripts.add(path)
  reviewText(path, text, notes)
}

/** Tells whether the target of a link in this file is outside of the skill; `/a` and `~` always are. */
function leadsOut(path: string, target: string): boolean {
  return /^[/~]/.test(target) || posix.join(posix.dirname(path), target).startsWith('..')
}

function reviewText(path: string, text: string, notes: Notes): void {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const lineAt = (at: number) => starts.findLastIndex((start) => start <= at) + 1
  const note = (rule: string, why: string, line: number) => void notes.suspicious.push({ rule, path, line, why })
  for (const { rule, why, at } of signsIn(text)) note(rule, why, lineAt(at))
  if (/\.(?:md|mdx|markdown|txt)$/i.test(path)) {
    for (const { relativePath, lineNumber } of extractMarkdownLinks(text))
      if (!isExternalLink(relativePath) && leadsOut(path, relativePath))
        note('link', `a link leads to ${quote(relativePath)}, out of the skill`, lineNumber)
    const commands = commandsIn(text)
    if (commands.length > mostCommands)
      note('long', `only the first ${mostCommands} of ${grouped(commands.length)} commands were looked at`, 0)
    for (const { code, line } of commands.slice(0, mostCommands)) reviewCommand(code, (rule, why) => note(rule, why, line), notes)
    return
  }
  for (const [, host = ''] of text.matchAll(/\b(?:https?|wss?|ftp):\/\/(?:[^\s/@"'`]*@)?([\w.-]+|\[[\da-f:]+\])/gi))
    notes.hosts.add(host.toLowerCase())
  if (/\.(?:sh|bash|zsh)$/.test(path) || /^#!.*\b(?:ba|z|da)?sh\b/.test(text)) reviewCommand(text, (rule, why) => note(rule, why, 0), notes)
}

const shellFence = /^(?:sh|bash|zsh|shell|console|terminal|shell-session|shellscript)$/i
const startsLikeCommand =
  /^(?:\.\/|scripts\/|bin\/|(?:sudo|curl|wget|bash|sh|python3?|node|bun|npx|npm|pip3?|uvx?|git|rm|cat|cp|mv|docker|gh)\s)/

type Command = { readonly code: string; readonly line: number }

/** Returns the commands of fences for the shell, without prompts, and those in the text. */
function commandsIn(text: string): readonly Command[] {
  const found: Command[] = []
  let fence: { readonly mark: string; readonly language: string; readonly line: number; readonly lines: string[] } | undefined
  const close = () => {
    if (fence === undefined) return
    const { language, line, lines } = fence
    const typed = lines.flatMap((each) => /^\s*[$#>]\s+(.*)$/.exec(each)?.[1] ?? [])
    const isSession = typed.length > 0 && !/^(?:ba|z)?sh$/.test(language)
    if (shellFence.test(language) || (language === '' && isSession)) found.push({ code: (isSession ? typed : lines).join('\n'), line })
    fence = undefined
  }
  for (const [at, line] of text.split('\n').entries()) {
    const [, mark = '', language = ''] = /^ {0,3}(`{3,20}|~{3,20})[ \t]*([\w-]*)/.exec(line) ?? []
    if (fence !== undefined && mark.startsWith(fence.mark)) close()
    else if (fence !== undefined) fence.lines.push(line)
    else if (mark !== '') fence = { mark, language, line: at + 1, lines: [] }
    else
      for (const [, code = ''] of line.matchAll(/(?<!`)`([^`]{3,300})`(?!`)/g))
        if (startsLikeCommand.test(code)) found.push({ code, line: at + 1 })
  }
  close()
  return found
}

/** These verdicts of our own analysis are rare in an honest command. */
const oddRules: { readonly [rule: string]: string } = {
  'command.download_to_shell': 'download',
  'command.destructive': 'destroys',
  'command.fork_bomb': 'destroys',
  'command.dynamic': 'code',
  'command.shadows': 'code',
}

const project = '/project'
const home = '/home/user'

/** Judges the commands as if everything were permitted, to learn what they would do. */
function reviewCommand(whole: string, note: (rule: string, why: string) => void, notes: Notes): void {
  const code = whole.slice(0, mostCode)
  if (code.length < whole.length)
    note('long', `only the first ${grouped(mostCode)} characters of its ${grouped(whole.length)} were read as commands`)
  const paths = new Map<string, Set<string>>()
  const judge = (allow: readonly string[]) =>
    judgeCommand(code, {
      ...{ allow, forbidden: [], cwd: project, home, resolve: (name) => `/usr/bin/${name}` },
      path(path, access, cwd) {
        const at = posix.resolve(cwd, path)
        paths.set(at, (paths.get(at) ?? new Set()).add(access))
        return { ok: true }
      },
    })
  const first = judge(defaultAllow)
  const programs = first.executables.map((name) => name.split(' ')[0] ?? '')
  const { rule, reason, executables, hosts } = first.verdict === 'blocked' ? first : judge([...defaultAllow, ...programs])
  for (const program of executables) notes.programs.add(program)
  for (const host of hosts) notes.hosts.add(host)
  const odd = oddRules[rule] ?? (/whatever it reads from its input/.test(reason) ? 'code' : undefined)
  if (odd !== undefined) note(odd, reason)
  if (rule === 'command.privilege') notes.programs.add(reason.split(' ')[0] ?? '')
  for (const [path, accesses] of paths) {
    if (path === project || path.startsWith(`${project}/`) || /^\/dev\/(?:null|stdin|stdout|stderr)$/.test(path)) continue
    const shown = path.replace(home, '~')
    notes.outside.add(shown)
    if (accesses.has('run') && accesses.has('write')) note('download', `it runs ${quote(shown)}, which it has written itself`)
    if (isProtectedName(path))
      note(accesses.has('write') ? 'persist' : 'credentials', `it touches ${quote(shown)}, which holds keys or settings of other programs`)
  }
}
