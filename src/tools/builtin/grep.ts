/** Finds lines by regular expression and reads files only through the workspace. */

import type { Files } from './files.ts'

export type Match = { readonly path: string; readonly line: number; readonly text: string }

/** `unsearched` lists the files that were not searched completely, with the reason. */
export type Found =
  | { readonly ok: true; readonly matches: readonly Match[]; readonly unsearched: readonly string[] }
  | { readonly ok: false; readonly message: string }

/** `find` returns at most `most` matches, in the order of the files. */
export type Grep = { readonly ok: true; find(paths: readonly string[], most: number): Promise<Found> }

/** The length limit of a displayed line. */
export const SHOWN_BYTES = 300

/** The workspace scans at most this much of a file. */
export const SEARCHED_BYTES = 64 * 1024 * 1024
export const tooLarge = (path: string) => `${path} (larger than 64 MiB)`
const TESTED_BYTES = 2_000
const SLOW_MS = 100
const BREATH_MS = 25

/** A backtracking engine can take very long on one line, so the first slow line ends the search with an explanation. */
export function grepOwn(
  files: Pick<Files, 'scan'>,
  pattern: string,
  signal: AbortSignal,
): Grep | { readonly ok: false; readonly message: string } {
  const regex = compile(pattern)
  if (typeof regex === 'string') return { ok: false, message: `the pattern is no regular expression: ${regex}` }
  const find = async (paths: readonly string[], most: number): Promise<Found> => {
    const matches: Match[] = []
    const unsearched: string[] = []
    let breath = performance.now()
    for (const path of paths) {
      if (signal.aborted || matches.length >= most) break
      const slow = matchesIn({ files, path, regex, most, unsearched }, matches)
      if (slow !== undefined) return { ok: false, message: `the pattern takes too long on ${slow}; write it without nested repetition` }
      if (performance.now() - breath < BREATH_MS) continue
      await Bun.sleep(0)
      breath = performance.now()
    }
    return { ok: true, matches, unsearched }
  }
  return { ok: true, find }
}

/** Accepts `(?i)` at the start, because other engines spell the flag that way. */
function compile(pattern: string): RegExp | string {
  const [, flags = '', body = ''] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(pattern) ?? []
  try {
    return new RegExp(body, `u${flags}`)
  } catch {
    // A pattern without the "u" flag may contain more, such as a needless backslash.
  }
  try {
    return new RegExp(body, flags)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

type Task = {
  readonly files: Pick<Files, 'scan'>
  readonly path: string
  readonly regex: RegExp
  readonly most: number
  readonly unsearched: string[]
}

/** @returns undefined, or the line on which the engine was slow. A binary file has no lines. */
function matchesIn({ files, path, regex, most, unsearched }: Task, matches: Match[]): string | undefined {
  let slow: string | undefined
  const own: Match[] = []
  const scanned = files.scan(path, {
    maxLineBytes: TESTED_BYTES,
    onLine(line, text) {
      const subject = text()
      const before = performance.now()
      if (regex.test(subject)) own.push({ path, line, text: shown(subject) })
      if (performance.now() - before > SLOW_MS) slow = `${path}:${line}`
      return slow === undefined && matches.length + own.length < most
    },
  })
  if (!scanned.ok) unsearched.push(`${path} (${scanned.denied ?? scanned.message})`)
  else if (!scanned.binary) matches.push(...own)
  if (scanned.ok && !scanned.complete) unsearched.push(tooLarge(path))
  return slow
}

function shown(line: string): string {
  return line.length > SHOWN_BYTES ? `${line.slice(0, SHOWN_BYTES).toWellFormed()}…` : line
}
