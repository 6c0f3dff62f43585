/** Turns an executable into a tool: JSON arguments in its first argument, the result on stdout, errors on stderr, an exit code. */

import type { JsonObject } from '../../kit/json.ts'
import type { Risk } from '../../runtime/event.ts'
import type { Tool, ToolContext, ToolResult, ToolSpec } from '../../runtime/port.ts'
import { recordSandbox } from '../confined.ts'
import { done, fail } from '../input.ts'
import { type ExecutableHost, type Program, type Run, runExecutable } from './run-executable.ts'

export type Executable = Tool & {
  /** Path of the executable. */
  readonly source: string
  /** Hash of the bytes that were described and that will run. */
  readonly sha256: string
  /** Returns the reason why the tool may no longer run: the file is gone, refused, or different. */
  changed(): string | undefined
}

export type Making = {
  readonly spec: ToolSpec
  readonly program: Program
  readonly sha256: string
  readonly around: ExecutableHost
  /** The risk that the operator configured, never the tool's own claim. */
  readonly risk: Risk
  readonly readOnly: boolean
  readonly maxOutputBytes: number
  changed(): string | undefined
}

/** The kernel's limit for one argument, without the terminating NUL. */
const MAX_ARGUMENT = 131_071
const FLOOD_BYTES = 64 * 1024 * 1024
const KEPT_STDERR = 1_000

/** The gate knows only `risk`: it cannot judge paths or addresses of the call, so the sandbox confines the call instead. */
export function executableTool(making: Making): Executable {
  const { spec, program, sha256, risk, changed } = making
  return {
    ...spec,
    risk,
    source: program.path,
    sha256,
    changed,
    timeoutMs: 30_000,
    idempotent: false,
    touches: () => [],
    invoke: (input, context) =>
      recordSandbox(making.around.spawn, (spawn) => invoke({ ...making, around: { ...making.around, spawn } }, input, context)),
  }
}

async function invoke(
  { around, program, readOnly, maxOutputBytes }: Making,
  input: JsonObject,
  { signal }: ToolContext,
): Promise<ToolResult> {
  const argument = JSON.stringify(input)
  const bytes = Buffer.byteLength(argument)
  if (bytes > MAX_ARGUMENT)
    return fail(
      `the arguments have ${bytes} bytes as JSON and an executable takes ${MAX_ARGUMENT}; write what is long into a file and pass its path`,
    )
  const run = await runExecutable({ around, program, argument, signal, keep: maxOutputBytes, flood: FLOOD_BYTES, readOnly })
  return report(run, signal.aborted)
}

function report({ ended, stdout, stderr, bytes, flooded }: Run, stopped: boolean): ToolResult {
  if (!ended.ok) return fail(ended.message, stdout)
  const { code, signal, leftBehind, undone = [], refused = false, stopped: excess } = ended
  const said = stderr.trimEnd()
  const metadata = { exitCode: code, signal: signal ?? null, bytes, ...(leftBehind ? { leftBehind } : {}) }
  if (code === 0 && !stopped && !flooded && undone.length === 0)
    return done(stdout, said === '' ? metadata : { ...metadata, stderr: said.slice(0, KEPT_STDERR) })
  const how = excess ?? (signal === undefined ? `exit code ${code}` : `ended by ${signal}`)
  const why = flooded ? `stopped after printing more than ${FLOOD_BYTES} bytes` : said === '' ? how : `${how}: ${said}`
  const deniedBy = refused ? 'changes.direct' : undefined
  return { success: false, output: stdout, error: [why, ...undone].join('; '), metadata, deniedBy }
}
