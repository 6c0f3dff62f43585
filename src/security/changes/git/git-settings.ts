/** Finds the files and folders that git's settings make it run or read as more settings. */

import { type ConfigEntry, parseGitConfig } from './git-config.ts'

export type NamedBySettings = {
  /** Hook folders and programs, as written. */
  readonly run: readonly string[]
  /** More files of settings, as written. */
  readonly include: readonly string[]
}

const programs =
  /^(?:core\.(?:hookspath|fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|alias\..+|pager\..+|(?:diff|merge|filter|credential|gpg|hook|man|browser|difftool|mergetool|guitool|trailer|tar)\..+|credential\.helper|sequence\.editor|interactive\.difffilter|remote\..+\.(?:uploadpack|receivepack|vcs)|uploadpack\.packobjectshook|sendemail\..*cmd|submodule\..+\.update)$/s
const paths = /^(?:core\.hookspath|man\..+\.path|browser\..+\.path|(?:diff|merge)tool\..+\.path|gpg\.(?:.+\.)?program)$/s
const includes = /^include(?:if\..+)?\.path$/s

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
