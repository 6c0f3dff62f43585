/** Says of a skill, before anybody uses it, what it may do, what in it is suspicious, and what breaks the format of agentskills.io. */

import { posix } from 'node:path'
import { escapeHidden } from '../kit/escape.ts'
import { grouped, quote } from '../kit/text.ts'
import { judgeCommand } from '../security/command/judge.ts'
import { defaultAllow } from '../security/command/names.ts'
import { isProtectedName } from '../security/targets/protected.ts'
import { extractMarkdownLinks, isExternalLink } from './markdown-links.ts'
import type { Skill } from './skill-files.ts'

/** `text` is the beginning of the file, or the target of a link; absent for a file that is not text. `more`: the file goes on after it. */
export type SkillFile = Readonly<{ path: string; kind: 'file' | 'program' | 'link'; text?: string; more?: boolean }>

/** `line` counts from 1; 0 where the finding is about the whole file. */
export type SkillFinding = { readonly rule: string; readonly path: string; readonly line: number; readonly why: string }

export type SkillReview = {
  /** Sorted: the files that can run, the programs and hosts that its commands name, and the paths outside of the skill and the project. */
  readonly does: { readonly [what in 'scripts' | 'programs' | 'hosts' | 'outside' | 'tools']: readonly string[] }
  /** A person should look at these; an honest skill may have some. */
  readonly suspicious: readonly SkillFinding[]
  readonly faults: readonly SkillFinding[]
}

type Notes = { readonly [what in 'scripts' | 'programs' | 'hosts' | 'outside']: Set<string> } & { readonly suspicious: SkillFinding[] }

const [mostFindings, mostCommands, mostCode] = [100, 200, 32_768]
const scriptName = /\.(?:sh|bash|zsh|py|rb|pl|js|mjs|cjs|ts|php|lua|ps1|bat|cmd)$/i

/** Pure; runs nothing. `skill` is the parsed SKILL.md, or why it cannot be read. */
export function reviewSkill(skill: Skill | string, files: readonly SkillFile[]): SkillReview {
  const notes: Notes = { scripts: new Set(), programs: new Set(), hosts: new Set(), outside: new Set(), suspicious: [] }
  for (const file of files) reviewFile(file, notes)
  const tools = typeof skill === 'string' ? [] : (skill.skill.allowedTools ?? [])
  if (tools.some((tool) => /^\W*\*/.test(tool)))
    notes.suspicious.push({ rule: 'tools', path: 'SKILL.md', line: 0, why: 'allowed-tools names every tool; list those that it needs' })
  const { suspicious, ...sets } = notes
  const [scripts = [], programs = [], hosts = [], outside = []] = Object.values(sets).map((set) => [...set].toSorted())
  return { does: { scripts, programs, hosts, outside, tools }, suspicious: distinct(suspicious), faults: faultsOf(skill, files) }
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

const mediaName = /\.(?:png|jpe?g|gif|webp|ico|woff2?|ttf)$/i

function reviewFile({ path, kind, text, more = false }: SkillFile, notes: Notes): void {
  const note = (rule: string, why: string) => void notes.suspicious.push({ rule, path, line: 0, why })
  if (kind === 'link') {
    if (leadsOut(path, text ?? '')) note('link', `the link leads to ${quote(text)}, out of the skill`)
  } else if (text === undefined) {
    if (kind === 'program' || !(mediaName.test(path) || /\.pdf$/i.test(path)))
      note('binary', 'it is a program or an archive that cannot be read')
  } else {
    if (mediaName.test(path)) note('binary', 'it is a text under the name of a picture or a font')
    if (more) note('long', `only its first ${grouped(text.length)} characters were looked at`)
    if (kind === 'program' || scriptName.test(path) || text.startsWith('#!')) notes.scripts.add(path)
    reviewText(path, text, notes)
  }
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

/** Returns the commands of fences for the shell, without prompts, and those in the text. */
function commandsIn(text: string) {
  const found: { readonly code: string; readonly line: number }[] = []
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
  ...{ 'command.download_to_shell': 'download', 'command.destructive': 'destroys', 'command.fork_bomb': 'destroys' },
  ...{ 'command.dynamic': 'code', 'command.shadows': 'code' },
}

const [project, home] = ['/project', '/home/user']

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

/** `at` is a position in the text that was searched. */
type Sign = { readonly rule: string; readonly at: number; readonly why: string }

type Pattern = { readonly rule: string; readonly why: string; readonly pattern: RegExp }

/** Reads lines `rule | why | pattern`; within a pattern, `{near}` stands for a few words of the same clause. */
function rows(text: string): readonly Pattern[] {
  const lines = text.trim().split('\n')
  return lines.map((line) => {
    const [rule = '', why = '', ...pattern] = line.split(' | ')
    return { rule, why, pattern: new RegExp(pattern.join(' | ').replaceAll('{near}', '[^.,;:\\n]{0,60}'), 'gimu') }
  })
}

const signs = rows(String.raw`
override | it puts itself above other instructions | \b(?:ignore|disregard|forget|override|bypass)\b{near}\b(?:previous|prior|earlier|above|preceding|other|system|developer|original|existing)\b{near}\b(?:instructions?|rules|guidance|guidelines|prompts?|directions|context)\b
override | it puts itself above other instructions | \b(?:ignorier\w*|vergiss){near}(?:anweisung|regel)|\b(?:ignore[zr]?|oublie[zr]?|olvida|ignora){near}(?:instructions? précédentes|instrucciones|reglas|istruzioni)|(?:忽略|无视|忘记).{0,12}(?:指令|规则|提示)|игнорируй\S*{near}(?:инструкц|указан)|(?:以前|これまで)の(?:指示|命令)を無視
override | it puts itself above other instructions | \btakes? precedence over (?:everything|all|any|the (?:system|user))|\bover the user'?s? (?:wish|will|request|instruction)|\b(?:you are now|act as|enter)\b{near}\b(?:maintenance mode|developer mode|god mode|jailbr\w+|without (?:any )?restrictions|unrestricted)|\bdo not refuse\b
override | it wants to be loaded before others | \balways (?:load|use|call|run|activate) this (?:skill|tool)\b{near}\b(?:first|before)\b
secrecy | it hides something from the user | \b(?:do not|don't|never)\s+(?:tell|mention|inform|show|reveal|notify|disclose|report)\b{near}\b(?:user|it|this|them|commands?)\b{near}(?:$|[.,;])(?<=\b(?:user|owner|human)\b.{0,60}|\bmention (?:it|this)[.,;]?)
secrecy | it acts without the user's knowledge | \b(?:secretly|covertly)\b|\b(?:run|send|upload|copy|execute|install|post)\b{near}\bsilently\b|\bsilently (?:run|send|upload|copy|execute|install|post)|\b(?:as|in) an invisible\b|(?<!\b(?:not|never|don't)\b[^.\n]{0,40})(?:\b(?:any|all|every|each) (?:tools?|commands?|actions?)\b{near}\bwithout (?:asking|confirmation)|\bapprove\b{near}\bwithout reading|\bwithout (?:telling|notifying|the user's? know))
credentials | it asks for a secret | \b(?:ask|request|prompt|demand|tell|have)\b{near}\b(?:user|them|for)\b{near}\b(?:passwords?|passphrase|seed phrase|recovery phrase|private key|mnemonic|one-time code|second factor|2fa|pin code|api key|cookies?)\b
credentials | it touches files or stores with keys | ^(?!.*(?:IdentityFile|ssh-keygen|ssh -i\b|\.pub\b)).*?(?:\.ssh\/(?:id_|\*|authorized)|\bid_(?:rsa|ed25519)\b|\.aws\/credentials|~\/\.(?:netrc|npmrc|pypirc|git-credentials|pgpass|env\b)|\.credentials\.json|\/etc\/shadow|\bLogin Data\b|\bwallet\.dat\b|find-(?:generic|internet)-password|(?:braidclaw|clawdbot|openclaw)\/\.env)
credentials | it takes the whole environment | dict\(os\.environ\)|(?:dumps|str|list)\(os\.environ|stringify\(process\.env\)|(?:^|[\s;|&(])(?:env|printenv|export -p)\b[^\n]{0,60}\|\s*(?:curl|wget|nc|ncat|base64|xxd|openssl|tee|python3?|node)\b|\bsend\b{near}\benvironment variables\b
download | it runs what it downloads | \b(?:iex|invoke-expression)\b{near}\b(?:iwr|irm|curl|invoke-webrequest|downloadstring)\b|\bdownload\b[^\n]{0,200}\b(?:start|run|execute|open|launch)\b[^\n]{0,20}\b(?:program|installer|binary|executable|app|file|it)\b|\b(?:extract|unpack|unzip)\b[^\n]{0,40}\bpassword\b
download | it takes its instructions from a page | \b(?:do|follow|obey|execute)\b{near}\b(?:written|instructions|rules|steps)\b[^\n]{0,40}https?:\/\/|https?:\/\/\S+[^\n]{0,60}\b(?:follow|obey) (?:it|them)\b
code | it runs code that is known only when it runs | (?<![.\w])(?:eval|exec)\s*\((?!\s*\))|\bnew Function\s*\(|\b__import__\s*\(|\bmarshal\.loads\b|\bpickle\.loads\b
shell | it gives a shell to another machine | \/dev\/(?:tcp|udp)\/|\bdup2\s*\(|\bpty\.spawn\b|\b(?:nc|ncat|netcat)\b[^\n]{0,60}(?:\s-\w*e\b|\s\d{2,5}\b)|\bsocat\b[^\n]{0,60}\bexec:
tunnel | it sends data inside the name of a host | \b(?:dig|nslookup|host|ping)\b[^\n]{0,30}\$\(
checks | it turns checks off | --dangerously-\w+|--yolo\b|--no-verify\b|--no-sandbox\b|\bsandbox\s*=\s*["']?none|\bautonomy\s*=\s*["']?full|spctl --master-disable|\bxattr -c|\bsetenforce 0|csrutil disable|\b(?:disable|turn off|switch off|deactivate|bypass|skip)\b{near}\b(?:antivirus|gatekeeper|firewall|sandbox|approvals?|safety|security checks?|permission checks?|defender)\b|\bapprove (?:every|all)\b|\bevery command is approved\b
persist | it stays after the task | \bauthorized_keys\b|\|\s*crontab\b|\bLaunchAgents\b|\bsystemctl --user enable\b|\b(?:write|add|append|save|put|insert)\b{near}\b(?:AGENTS|CLAUDE|SOUL|MEMORY|GEMINI)\.md\b
registry | it installs from elsewhere than the usual registry | --(?:extra-)?index-url\b|--registry[ =]|\b(?:npm|pnpm|yarn|bun|pip3?|uv)\b (?:i|install|add|pip install)\b[^\n\x60]{0,60}\s(?:git\+|https?:\/\/)
spelling | a word mixes letters that look alike | (?<![\p{L}])(?=\p{L}*[a-z])(?=\p{L}*\p{Script=Cyrillic})\p{L}{2,}
spelling | it writes commands in full-width letters | [\uff41-\uff5a]{2,}|[a-z][\uff41-\uff5a]|[\uff41-\uff5a][a-z]
`)

/** Texts that a reader of the rendered page does not see; each match ends with the text. Lengths are bounded for the sake of time. */
const unseen = [
  /<!--([\s\S]{0,1000})/g,
  /^\[[^\]\n]{0,200}\]:\s{0,9}(?:#|<>)\s{0,9}[("']([^\n]{0,1000})/gm,
  /<\w+[^>]{0,200}(?:display:\s*none|visibility:\s*hidden|font-size:\s*0|color:\s*(?:white|#fff\b|transparent)|\shidden\b)[^>]{0,200}>([^<]{0,1000})/gi,
  /!\[[^\]\n]{0,200}\]\([^)\s]{1,500}\s+"([^"\n]{20,1000})"\)/g,
]
const instructs =
  /\b(?:assistants?|agents?|ai|model|system|you|must|always|never|run|execute|send|read|fetch|upload|append|ignore|forget|reply|replace|curl|approve)\b/i

/** Enough for a person to look at; a hostile text can have as many as it likes. */
const mostMatches = 20

/** Returns every sign, in no particular order. Pure. `text` may be hostile; it should be at most a few hundred KiB long. */
function signsIn(text: string): readonly Sign[] {
  const found: Sign[] = [...hiddenIn(text), ...encodedIn(text)]
  for (const { rule, why, pattern } of signs)
    for (const match of text.matchAll(pattern).take(mostMatches)) found.push({ rule, at: match.index, why: said(why, match[0]) })
  for (const pattern of unseen)
    for (const match of text.matchAll(pattern).take(mostMatches)) {
      const words = (match.at(-1) ?? '').replace(/-->[\s\S]*/, '').trim()
      if (instructs.test(words) && words.split(/\s+/).length >= 4)
        found.push({ rule: 'unseen', at: match.index, why: said('text that a page does not show has instructions', words) })
    }
  return found
}

function said(why: string, text: string): string {
  return `${why}: ${quote(text.trim().replace(/\s+/g, ' '))}`
}

function hiddenIn(text: string): readonly Sign[] {
  let at = 0
  for (const line of text.split('\n')) {
    const bare = line.replace(at === 0 ? /^\uFEFF|\r$/g : /\r$/, '')
    if (escapeHidden(bare) !== bare)
      return [{ rule: 'hidden', at, why: said('characters that do not show, or turn the text around', bare) }]
    at += line.length + 1
  }
  return []
}

/** Reads encoded text, and finds text that nobody can read. */
function encodedIn(whole: string): readonly Sign[] {
  const found: Sign[] = []
  const text = whole.replace(/data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]+/g, (picture) => ' '.repeat(picture.length))
  for (const match of text.matchAll(/(?<![\w+/=-])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/])/g).take(mostMatches * 20)) {
    const decoded = Buffer.from(match[0], 'base64').toString('latin1')
    if (/^[\x20-\x7e\s]+$/.test(decoded) && /\s/.test(decoded))
      found.push({ rule: 'encoded', at: match.index, why: said('encoded text says', decoded) })
  }
  const runs = /(?:\\x[0-9a-f]{2}){8,}|(?:\\u[0-9a-f]{4}){8,}|(?:\b\d{2,3}\b\s{0,9},\s{0,9}){16,}|[^\s"'`<>]{300,}/gi
  for (const match of text.matchAll(runs).take(mostMatches))
    if (!/^https?:/.test(match[0]))
      found.push({ rule: 'encoded', at: match.index, why: said(`${grouped(match[0].length)} characters that nobody can read`, match[0]) })
  return found
}
