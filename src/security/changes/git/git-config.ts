/** Reads files of git settings, the files that they include, and the programs that they make git run. */

/** `key` is as `git config --list` prints it: section and name in lower case; `value` is undefined for a name without "=". */
export type ConfigEntry = { readonly key: string; readonly value: string | undefined }

const header = /\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n\0]|\\[^\n\0])*)")?\]/y
const blank = /(?:[ \t\n]+|[#;][^\n]*)*/y
const name = /([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|\n|$)/y

/**
 * Parses a file of git settings exactly as git does. @returns the entries in order; undefined for what git would refuse or read in another
 * way
 */
export function parseGitConfig(text: string): readonly ConfigEntry[] | undefined {
  const source = text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n')
  if (/[\0\r]/.test(source)) return
  const entries: ConfigEntry[] = []
  let section: string | undefined
  for (let at = skip(source, 0); at < source.length; at = skip(source, at)) {
    const head = match(header, source, at)
    const entry = head ? undefined : match(name, source, at)
    if (head) section = sectionOf(head)
    const found = head ?? entry
    if (found === undefined || section === undefined) return
    at += found[0].length
    if (entry === undefined) continue
    const value = entry[2] === '=' ? readValue(source, at) : { end: at, value: undefined }
    if (value === undefined) return
    entries.push({ key: `${section}.${entry[1]?.toLowerCase()}`, value: value.value })
    at = value.end
  }
  return entries
}

/** The characters of a quoted part keep their case; `\"` and `\\` lose their backslash, and so does every other character. */
function sectionOf([, section = '', sub]: RegExpExecArray): string {
  return section.toLowerCase() + (sub === undefined ? '' : `.${sub.replace(/\\(.)/g, '$1')}`)
}

function skip(source: string, at: number): number {
  return at + (match(blank, source, at)?.[0].length ?? 0)
}

function match(pattern: RegExp, source: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(source) ?? undefined
}

const escapes: { readonly [letter: string]: string } = { '\n': '', t: '\t', b: '\b', n: '\n', '\\': '\\', '"': '"' }

/** White space at the ends is dropped and inside becomes blanks, unless it is quoted; a backslash before the end of a line joins lines. */
function readValue(source: string, start: number): { readonly value: string; readonly end: number } | undefined {
  let value = ''
  let blanks = 0
  let quoted = false
  for (let at = start; ; at++) {
    const letter = source[at] ?? '\n'
    if (letter === '\n') return quoted ? undefined : { value, end: at }
    if (!quoted && (letter === ' ' || letter === '\t')) {
      if (value !== '') blanks++
      continue
    }
    if (!quoted && (letter === ';' || letter === '#')) return { value, end: (source.indexOf('\n', at) + 1 || source.length + 1) - 1 }
    value += ' '.repeat(blanks)
    blanks = 0
    if (letter === '"') quoted = !quoted
    else if (letter !== '\\') value += letter
    else {
      at++
      const character = escapes[source[at] ?? '\n']
      if (character === undefined) return
      value += character
    }
  }
}

type NamedBySettings = {
  /** Hook folders and programs, as written. */
  readonly run: readonly string[]
  /** More files of settings, as written. */
  readonly include: readonly string[]
}

const programs =
  /^(?:core\.(?:hookspath|fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|alias\..+|pager\..+|(?:diff|merge|filter|credential|gpg|hook|man|browser|difftool|mergetool|guitool|trailer|tar)\..+|credential\.helper|sequence\.editor|interactive\.difffilter|remote\..+\.(?:uploadpack|receivepack|vcs)|uploadpack\.packobjectshook|sendemail\..*cmd|submodule\..+\.update)$/s
const paths = /^(?:core\.hookspath|man\..+\.path|browser\..+\.path|(?:diff|merge)tool\..+\.path|gpg\.(?:.+\.)?program)$/s
const includes = /^include(?:if\..+)?\.path$/s

/** Finds the files and folders that git's settings make it run or read as more settings. */
export function namedBySettings(entries: readonly ConfigEntry[]): NamedBySettings {
  const of = (pattern: RegExp) => entries.flatMap(({ key, value }) => (value !== undefined && pattern.test(key) ? [{ key, value }] : []))
  return {
    run: of(programs).flatMap(({ key, value }) => (paths.test(key) ? [value] : words(value))),
    include: of(includes).map(({ value }) => value),
  }
}

/** The words of a shell command that may be paths in the work tree. */
function words(command: string): string[] {
  return command.split(/[\s'"`$();|&<>!=]+/).filter((word) => /[./]/.test(word) && !/^(?:https?:|-)/.test(word) && !/^\.+\/?$/.test(word))
}

const mostFiles = 20
export const mostSettingsBytes = 256 * 1024

export type SettingsFile = { readonly path: string; readonly entries: readonly ConfigEntry[] }

/**
 * Reads a file of settings and the files that it includes. A path is resolved and read by the caller; what cannot be read or parsed has
 * no entries, as git would stop there.
 */
export function readSettings(
  files: readonly string[],
  around: {
    readonly read: (path: string) => string | undefined
    /** @returns undefined for a path that is of no interest */
    readonly resolve: (path: string, from: string) => string | undefined
  },
): readonly SettingsFile[] {
  const found: SettingsFile[] = []
  const seen = new Set(files)
  for (const path of seen) {
    const text = seen.size > mostFiles ? undefined : around.read(path)
    const entries = (text === undefined ? undefined : parseGitConfig(text)) ?? []
    found.push({ path, entries })
    for (const include of namedBySettings(entries).include) {
      const next = around.resolve(include, path)
      if (next !== undefined) seen.add(next)
    }
  }
  return found
}
