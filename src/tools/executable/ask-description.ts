/** Asks an executable, as foreign code, for its description: in the sandbox, without network or writes, with a short time limit. */

import { cut, visible } from '../../kit/text.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import { parseDescription } from './description.ts'
import { type ExecutableHost, type Program, type Run, runExecutable } from './run-executable.ts'

export type Described =
  | { readonly ok: true; readonly spec: ToolSpec; readonly text: string }
  | { readonly ok: false; readonly why: string; readonly hung?: true }

const TIMEOUT_MS = 5_000
const MAX_BYTES = 65_536

/** `text` is the printed description, for the cache. Never rejects. Only tests pass `timeoutMs`. */
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

function failure({ ended, stderr, flooded }: Run): string | undefined {
  if (flooded) return `it printed more than ${MAX_BYTES} bytes for --describe`
  if (!ended.ok) return ended.message
  if (ended.code === 0) return undefined
  const how = ended.signal === undefined ? `exit code ${ended.code}` : ended.signal
  const said = cut(visible(stderr.trim()), 200)
  return `--describe ended with ${how}${said === '' ? '' : `: ${said}`}`
}
