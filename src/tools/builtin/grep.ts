/** Finds lines by regular expression, with ripgrep or our own search, and reads files only through the workspace. */

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { attempt, errorText } from '../../kit/errors.ts'
import type { ChildEnvironment } from '../../sandbox/contract.ts'
import type { Workspace } from '../../workspace/contract.ts'
import type { Spawn, SpawnResult } from '../process.ts'

export type Match = { readonly path: string; readonly line: number; readonly text: string }

/** `unsearched` lists the files that were not searched completely, with the reason. */
export type GrepResult =
  | { readonly ok: true; readonly matches: readonly Match[]; readonly unsearched: readonly string[] }
  | { readonly ok: false; readonly message: string }

/** `find` returns at most `most` matches, in the order of the files. */
export type Grep = { readonly ok: true; find(paths: readonly string[], most: number): Promise<GrepResult> }

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
  files: Pick<Workspace, 'scan'>,
  pattern: string,
  signal: AbortSignal,
): Grep | { readonly ok: false; readonly message: string } {
  const regex = compile(pattern)
  if (typeof regex === 'string') return { ok: false, message: `the pattern is not a regular expression: ${regex}` }
  const find = async (paths: readonly string[], most: number): Promise<GrepResult> => {
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
    // A pattern without the "u" flag may contain more, such as a needless backslash.
    return attempt(() => new RegExp(body, `u${flags}`)) ?? new RegExp(body, flags)
  } catch (error) {
    return errorText(error)
  }
}

type Task = {
  readonly files: Pick<Workspace, 'scan'>
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

type RipgrepOptions = {
  readonly files: Pick<Workspace, 'root' | 'scan'>
  readonly spawn: Spawn
  readonly env: ChildEnvironment
  readonly path: string
  readonly pattern: string
  readonly signal: AbortSignal
}

const MAX_ARGUMENT_BYTES = 100_000
const MAX_OUTPUT_BYTES = 8 * 1024 * 1024

/**
 * Uses ripgrep to find line numbers quickly, and reads the displayed lines again through the workspace: a file that was replaced while
 * ripgrep read it by name reveals nothing from outside the workspace.
 * @returns undefined when ripgrep does not run or does not understand the pattern
 */
export async function createRipgrep(options: RipgrepOptions): Promise<Grep | undefined> {
  const { ended } = await run(options, ['/dev/null'])
  if (!ended.ok || (ended.code !== 0 && ended.code !== 1)) return undefined
  return { ok: true, find: (paths, most) => find(options, paths, most) }
}

async function find(options: RipgrepOptions, paths: readonly string[], most: number): Promise<GrepResult> {
  const matches: Match[] = []
  // ripgrep searches a named file to its end, so a sparse file would keep ripgrep busy for its whole apparent size.
  const large = new Set(paths.filter((path) => sizeOf(resolve(options.files.root, path)) > SEARCHED_BYTES))
  for (const group of groups(paths.filter((path) => !large.has(path)))) {
    if (options.signal.aborted || matches.length >= most) break
    const { ended, output } = await run(options, group)
    if (!ended.ok) return { ok: false, message: ended.message }
    const numbers = parse(output)
    for (const path of group) if (matches.length < most) matches.push(...read(options.files, path, numbers.get(path) ?? new Set()))
  }
  return { ok: true, matches: matches.slice(0, most), unsearched: [...large].map(tooLarge) }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Groups as many paths as fit safely on one command line. */
function groups(paths: readonly string[]): string[][] {
  const all: string[][] = []
  let room = 0
  for (const path of paths) {
    const bytes = Buffer.byteLength(path) + 3
    if (all.length === 0 || bytes > room) {
      all.push([])
      room = MAX_ARGUMENT_BYTES
    }
    all.at(-1)?.push(path)
    room -= bytes
  }
  return all
}

/** Prints `path NUL line ":"` for each match and nothing of the line itself. */
const flags =
  '--no-config --no-messages --color=never --no-heading --with-filename --line-number --null --only-matching --replace= --max-count=200 --max-filesize=64M --threads=2'

async function run(
  { spawn, env, path, pattern, files, signal }: RipgrepOptions,
  paths: readonly string[],
): Promise<{ ended: SpawnResult; output: string }> {
  const flood = new AbortController()
  const decoder = new TextDecoder()
  let output = ''
  const ended = await spawn({
    argv: [path, ...flags.split(' '), '-e', pattern, '--', ...paths.map((name) => (name.startsWith('/') ? name : `./${name}`))],
    cwd: files.root,
    env,
    signal: AbortSignal.any([signal, flood.signal]),
    onOutput(chunk, from) {
      if (from === 'stdout') output += decoder.decode(chunk, { stream: true })
      if (output.length > MAX_OUTPUT_BYTES) flood.abort()
    },
  })
  return { ended, output }
}

function parse(output: string): Map<string, Set<number>> {
  const numbers = new Map<string, Set<number>>()
  for (const [, name = '', line] of output.matchAll(/^((?:\.\/|\/)[^\0]*)\0(\d+):$/gm)) {
    const path = name.replace(/^\.\//, '')
    numbers.set(path, (numbers.get(path) ?? new Set()).add(Number(line)))
  }
  return numbers
}

function read(files: Pick<Workspace, 'scan'>, path: string, lineNumbers: ReadonlySet<number>): Match[] {
  if (lineNumbers.size === 0) return []
  const last = Math.max(...lineNumbers)
  const matches: Match[] = []
  const scanned = files.scan(path, {
    maxLineBytes: SHOWN_BYTES,
    onLine(line, text) {
      if (lineNumbers.has(line)) matches.push({ path, line, text: text() })
      return line < last
    },
  })
  return scanned.ok && !scanned.binary ? matches : []
}
