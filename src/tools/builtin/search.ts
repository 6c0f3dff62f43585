/** Defines the tool search, which finds files by glob, lines by regular expression, or both. */

import { objectSchema } from '../../kit/json.ts'
import type { ToolContext, ToolResult } from '../../runtime/port.ts'
import type { ChildEnvironment } from '../../sandbox/contract.ts'
import type { Workspace } from '../../workspace/contract.ts'
import type { Spawn } from '../process.ts'
import { done, fail, recordSandbox, refused, type ToolKind, textOr } from '../tool-kind.ts'
import type { Grep, Match } from './grep.ts'

export type SearchDeps = {
  readonly files: Pick<Workspace, 'root' | 'walk' | 'scan' | 'stat'>
  readonly spawn: Spawn
  readonly env: ChildEnvironment
  /** Path of ripgrep; null means not to use it. When absent, the tool looks it up on the environment's PATH. */
  readonly ripgrep?: string | null
}

const MAX_FILES = 50_000
const MAX_RESULTS = 200
const BATCH_FILES = 1_000

const parameters = objectSchema({ pattern: { type: 'string' }, glob: { type: 'string' }, path: { type: 'string' } })

export const search = {
  name: 'search',
  description: 'Find files by glob and/or lines by regex; skips .gitignored files.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, '.'), access: 'read' }],
  async run({ pattern = '', glob = '', path = '.' }, context, deps) {
    if (pattern === '' && glob === '') return fail('give a pattern (regular expression), a glob such as "**/*.ts", or both')
    if (pattern.length > 1_000 || glob.length > 1_000) return fail('pattern and glob may have at most 1,000 characters each')
    const start = deps.files.stat(path)
    if (!start.ok) return refused(start)
    const survey = { candidates: candidates(deps, path, glob), context }
    return pattern === '' ? names(survey) : recordSandbox(deps.spawn, (spawn) => lines({ ...deps, spawn }, survey, pattern))
  },
} as const satisfies ToolKind<typeof parameters, SearchDeps>

type Candidates = { readonly batches: AsyncIterable<readonly string[]>; readonly skipped: string[]; complete(): boolean }
type SearchRun = { readonly candidates: Candidates; readonly context: ToolContext }

/** Yields files in batches, and gives control back between batches so that a cancellation takes effect. */
function candidates({ files }: SearchDeps, path: string, glob: string): Candidates {
  const skipped: string[] = []
  const matches = matcher(glob)
  let complete = true
  async function* batches() {
    let batch: string[] = []
    let seen = 0
    for (const file of files.walk(path, { onSkip: (place, why) => skipped.push(`${place} (${why})`) })) {
      if (++seen > MAX_FILES) {
        complete = false
        break
      }
      if (matches(file)) batch.push(file)
      if (seen % BATCH_FILES !== 0) continue
      yield batch
      batch = []
      await Bun.sleep(0)
    }
    yield batch
  }
  return { batches: batches(), skipped, complete: () => complete }
}

/** A glob without a slash matches a name in any folder. */
function matcher(glob: string): (path: string) => boolean {
  if (glob === '') return () => true
  const compiled = new Bun.Glob(glob.includes('/') ? glob.replace(/^\.?\//, '') : `**/${glob}`)
  return (path) => compiled.match(path)
}

async function names({ candidates, context }: SearchRun): Promise<ToolResult> {
  const found: string[] = []
  for await (const batch of candidates.batches) {
    if (context.signal.aborted) return fail('stopped before the search was over')
    found.push(...batch)
  }
  const rest = found.length - MAX_RESULTS
  const notice = rest > 0 ? [`[… ${rest} of ${found.length} files not shown; narrow the glob or the path …]`] : []
  return finish(candidates, [...found.slice(0, MAX_RESULTS).map(printable), ...notice], found.length)
}

async function lines(deps: SearchDeps, { candidates, context }: SearchRun, pattern: string): Promise<ToolResult> {
  const grep = await grepFor(deps, pattern, context)
  if (!grep.ok) return fail(grep.message)
  const found: Match[] = []
  let files = 0
  for await (const batch of candidates.batches) {
    if (context.signal.aborted) return fail('stopped before the search was over')
    files += batch.length
    const result = await grep.find(batch, MAX_RESULTS + 1 - found.length)
    if (!result.ok) return fail(result.message)
    found.push(...result.matches)
    candidates.skipped.push(...result.unsearched)
    if (found.length > MAX_RESULTS) break
  }
  const notice = found.length > MAX_RESULTS ? [`[… more than ${MAX_RESULTS} lines match; narrow the pattern, the glob or the path …]`] : []
  const shown = found.slice(0, MAX_RESULTS).map(({ path, line, text }) => `${printable(path)}:${line}: ${text}`)
  return finish(candidates, shown.length === 0 ? [`no line matches in ${files} files`] : [...shown, ...notice], shown.length)
}

/** Uses ripgrep where it is installed and understands the pattern, otherwise our own search. */
async function grepFor(
  deps: SearchDeps,
  pattern: string,
  context: ToolContext,
): Promise<Grep | { readonly ok: false; readonly message: string }> {
  const path = deps.ripgrep === undefined ? Bun.which('rg', { PATH: deps.env.PATH ?? '' }) : deps.ripgrep
  const { createRipgrep, grepOwn } = await import('./grep.ts')
  const fast = path === null ? undefined : await createRipgrep({ ...deps, path, pattern, signal: context.signal })
  return fast ?? grepOwn(deps.files, pattern, context.signal)
}

function finish(candidates: Candidates, shown: readonly string[], results: number): ToolResult {
  const { skipped } = candidates
  const more = skipped.length > 3 ? ', …' : ''
  const notes = [
    ...(skipped.length === 0
      ? []
      : [`[${skipped.length} places were not searched: ${skipped.slice(0, 3).map(printable).join(', ')}${more}]`]),
    ...(candidates.complete() ? [] : [`[only the first ${MAX_FILES} files were looked at; narrow the path]`]),
  ]
  const body = shown.length === 0 ? ['no file matches'] : shown
  return done([...body, ...notes].join('\n'), { results })
}

/** Shows a name with control characters in JSON quotes, because it could otherwise forge a line. */
function printable(path: string): string {
  return /[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path
}
