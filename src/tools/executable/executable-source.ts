/** Offers the executables of a folder as tools, and updates the list before each turn with new, changed and deleted files. */

import { within } from '../../kit/abort.ts'
import { cut, visible } from '../../kit/text.ts'
import type { Risk } from '../../runtime/event.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import type { ChildEnvironment } from '../../sandbox/contract.ts'
import { parseDescription } from './description.ts'
import type { ExecutableStore } from './executable-store.ts'
import { type Executable, type ExecutableHost, executableTool, type Program, type ProgramRun, runExecutable } from './executable-tool.ts'
import { type ExecutableFile, findExecutables, type RefusedExecutable } from './find-executables.ts'

export type SourceOptions = {
  /** Path of a folder or of one executable. */
  readonly at: string
  readonly store: ExecutableStore
  readonly around: ExecutableHost
  /** Names of the built-in tools, which an executable may not use. */
  readonly builtIn: readonly string[]
  readonly untrusted: (folder: string) => string | undefined
  /** The risk that the operator configured for the tool of this name. */
  readonly riskOf: (name: string) => Risk
  /** The variables that the operator allows the tool of this name, when it runs; --describe gets none. */
  readonly envOf?: (name: string) => ChildEnvironment
  readonly readOnly: boolean
  readonly maxOutputBytes: number
  /** Also asks the programs that did not answer an earlier time. */
  readonly askAgain?: boolean
  /** Limits the time for --describe; only tests pass it. */
  readonly timeoutMs?: number
}

/** `tools` stays the same array while nothing changes. `why` explains why the folder itself is unusable. */
export type ExecutableSurvey =
  | { readonly ok: true; readonly tools: readonly Executable[]; readonly refused: readonly RefusedExecutable[] }
  | { readonly ok: false; readonly why: string }

type SurveyEntry = { readonly tool: Executable } | { readonly refused: RefusedExecutable }

const AT_ONCE = 4
/** A program that has not answered by then no longer keeps the others waiting. */
const PATIENCE_MS = 1_000

/** @returns a function that surveys the folder once and never rejects */
export function createSource(options: SourceOptions): () => Promise<ExecutableSurvey> {
  const known = new Map<string, { readonly sha256: string; readonly stamp: string; readonly at: number; readonly entry: SurveyEntry }>()
  const state: { tools: readonly Executable[] } = { tools: [] }

  async function describeFile(found: ExecutableFile): Promise<SurveyEntry> {
    const kept = options.store.keep(found.path)
    if (!kept.ok) return { refused: { path: found.path, why: kept.why } }
    const before = known.get(found.path)
    const { sha256, stamp } = kept
    if (before?.sha256 === sha256 && ('tool' in before.entry || (before.stamp === stamp && isRecent(before.at)))) return before.entry
    const entry = await toolFrom(options, { ...found, copy: kept.copy }, kept)
    known.set(found.path, { sha256, stamp, at: Date.now(), entry })
    return entry
  }

  return async () => {
    const finding = findExecutables(options)
    if (!finding.ok) return finding
    const all = distinct(await inTurns(finding.found, describeFile), options.builtIn)
    const tools = all.flatMap((one) => ('tool' in one ? [one.tool] : [])).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const same = tools.length === state.tools.length && tools.every((tool, at) => tool === state.tools[at])
    if (!same) state.tools = tools
    return { ok: true, tools: state.tools, refused: [...finding.refused, ...all.flatMap((one) => ('tool' in one ? [] : [one.refused]))] }
  }
}

/**
 * Describes the same bytes at the same path at most once: this process remembers the description, or the store does. The store also
 * remembers a program that did not answer, because each process would wait for it again.
 */
async function toolFrom(options: SourceOptions, program: Program, { sha256, stamp }: Bytes): Promise<SurveyEntry> {
  const { store, around, askAgain = false, timeoutMs } = options
  const recalled = store.recall({ sha256, path: program.path })
  const [, hungAs, hungAt] = /^no answer (\S+) (\d+)$/.exec(recalled ?? '') ?? []
  if (hungAs === stamp && isRecent(Number(hungAt)) && !askAgain)
    return { refused: { path: program.path, why: didNotAnswer(program), known: true } }
  const before = recalled === undefined ? undefined : parseDescription(recalled)
  const described = before?.ok ? before : await describe(around, program, timeoutMs)
  if (!described.ok) {
    if ('hung' in described) store.remember({ sha256, path: program.path }, `no answer ${stamp} ${Date.now()}`)
    return { refused: { path: program.path, why: 'hung' in described ? didNotAnswer(program) : described.why } }
  }
  if ('text' in described && typeof described.text === 'string') store.remember({ sha256, path: program.path }, described.text)
  const { spec, input } = described
  const { readOnly, maxOutputBytes } = options
  const risk = options.riskOf(spec.name)
  return {
    tool: executableTool({
      spec,
      program,
      sha256,
      around: { ...around, env: { ...around.env, ...options.envOf?.(spec.name) } },
      risk,
      readOnly,
      maxOutputBytes,
      input,
      changed: () => changed(options, program, sha256),
    }),
  }
}

type Bytes = { readonly sha256: string; readonly stamp: string }

/** A busy machine may have been the cause. */
const ASK_AGAIN_MS = 3_600_000

function isRecent(at: number): boolean {
  return Date.now() - at < ASK_AGAIN_MS
}

function didNotAnswer({ path }: Program): string {
  return `it did not answer --describe in time, and is asked again in an hour, or when its file changes; to ask it now: braidclaw tool describe ${path}`
}

function changed({ untrusted, store }: SourceOptions, { path }: Program, sha256: string): string | undefined {
  const finding = findExecutables({ at: path, untrusted })
  if (!finding.ok || finding.found.length === 0)
    return `${path}: ${finding.ok ? (finding.refused[0]?.why ?? 'it is not executable any more') : 'it is gone'}`
  const now = store.keep(path)
  if (!now.ok) return `${path}: ${now.why}`
  return now.sha256 === sha256
    ? undefined
    : `${path} is another file than the one that was described (sha256 ${now.sha256.slice(0, 12)}, was ${sha256.slice(0, 12)})`
}

/** Offers neither of two tools with one name: the choice between them must not depend on an order. */
function distinct(entry: readonly SurveyEntry[], builtIn: readonly string[]): readonly SurveyEntry[] {
  const tools = entry.flatMap((one) => ('tool' in one ? [one.tool] : []))
  return entry.map((one) => {
    if ('refused' in one) return one
    const { name, source } = one.tool
    const no = (why: string): SurveyEntry => ({ refused: { path: source, why } })
    if (builtIn.includes(name)) return no(`it calls itself "${name}", which is a built-in tool; give it another name`)
    const other = tools.find((tool) => tool.name === name && tool.source !== source)
    return other === undefined ? one : no(`it calls itself "${name}", and so does ${other.source}; rename one of them`)
  })
}

async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const waiting = items.entries()
  const results: Promise<R>[] = []
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [at, item] of waiting) {
        const result = work(item)
        results[at] = result
        await within(PATIENCE_MS, result)
      }
    }),
  )
  return Promise.all(results)
}

type Described =
  | { readonly ok: true; readonly spec: ToolSpec; readonly input?: 'stdin'; readonly text: string }
  | { readonly ok: false; readonly why: string; readonly hung?: true }

const TIMEOUT_MS = 5_000
const MAX_BYTES = 65_536

/**
 * Asks an executable, as foreign code, for its description: in the sandbox, without network or writes, with a short time limit.
 * `text` is the printed description, for the cache. Never rejects. Only tests pass `timeoutMs`.
 */
export async function describe(around: ExecutableHost, program: Program, timeoutMs = TIMEOUT_MS): Promise<Described> {
  // A program does not answer for the time that the sandbox takes to be tried.
  await around.ready?.()
  const late = new AbortController()
  const alarm = setTimeout(() => late.abort(), timeoutMs)
  const limits = { keep: MAX_BYTES, flood: MAX_BYTES, readOnly: true }
  const run = await runExecutable({ around, program, argument: '--describe', signal: late.signal, ...limits })
  clearTimeout(alarm)
  if (late.signal.aborted) return { ok: false, why: `it did not answer --describe within ${timeoutMs / 1_000} s`, hung: true }
  const why = failure(run)
  if (why !== undefined) return { ok: false, why }
  const parsed = parseDescription(run.stdout)
  return parsed.ok ? { ...parsed, text: run.stdout } : { ok: false, why: `it ${parsed.why}` }
}

function failure({ ended, stderr, flooded }: ProgramRun): string | undefined {
  if (flooded) return `it printed more than ${MAX_BYTES} bytes for --describe`
  if (!ended.ok) return ended.message
  if (ended.code === 0) return undefined
  const how = ended.signal === undefined ? `exit code ${ended.code}` : ended.signal
  const detail = cut(visible(stderr.trim()), 200)
  return `--describe ended with ${how}${detail === '' ? '' : `: ${detail}`}`
}
