/** Turns an executable into a tool: JSON arguments in its first argument or on stdin, the result on stdout, errors on stderr, an exit code. */

import { closeSync } from 'node:fs'
import { dirname } from 'node:path'
import { createCollector } from '../../kit/content/output-limit.ts'
import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { Risk } from '../../runtime/event.ts'
import type { Tool, ToolContext, ToolResult, ToolSpec } from '../../runtime/port.ts'
import type { ChildEnvironment } from '../../sandbox/contract.ts'
import { openContent, type Spawn, type SpawnResult } from '../process.ts'
import { done, fail, recordSandbox } from '../tool-kind.ts'

export type Executable = Tool & {
  /** Path of the executable. */
  readonly source: string
  /** Hash of the bytes that were described and that will run. */
  readonly sha256: string
  /** Returns the reason why the tool may no longer run: the file is gone, refused, or different. */
  changed(): string | undefined
}

type ExecutableOptions = {
  readonly spec: ToolSpec
  readonly program: Program
  readonly sha256: string
  readonly around: ExecutableHost
  /** The risk that the operator configured, never the tool's own claim. */
  readonly risk: Risk
  readonly readOnly: boolean
  readonly maxOutputBytes: number
  /** Where it reads its arguments; absent: in its first argument. */
  readonly input?: 'stdin' | undefined
  /** It prints one JSON value. */
  readonly printsJson?: true
  changed(): string | undefined
}

/** The kernel's limit for one argument, without the terminating NUL. */
const MAX_ARGUMENT = 131_071
const FLOOD_BYTES = 64 * 1024 * 1024
const KEPT_STDERR = 1_000

/** The gate knows only `risk`: it cannot judge paths or addresses of the call, so the sandbox confines the call instead. */
export function executableTool(making: ExecutableOptions): Executable {
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
  { around, program, readOnly, maxOutputBytes, input: from, printsJson }: ExecutableOptions,
  input: JsonObject,
  { signal }: ToolContext,
): Promise<ToolResult> {
  const text = JSON.stringify(input)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_ARGUMENT && from === undefined)
    return fail(
      `the arguments have ${bytes} bytes as JSON and an executable takes ${MAX_ARGUMENT}; write what is long into a file and pass its path`,
    )
  const given = from === 'stdin' ? { stdin: text } : { argument: text }
  const run = await runExecutable({ around, program, ...given, signal, keep: maxOutputBytes, flood: FLOOD_BYTES, readOnly })
  const result = report(run, signal.aborted)
  return printsJson && result.success ? { ...result, ...resultOf(parseJson(run.stdout), run.stdout) } : result
}

/**
 * Returns the result that a JSON value stands for: a text is the output, an object with only `output` or `error` is that, and every other
 * value is the output as it is. @param text what was printed, for the message when it is not JSON
 */
export function resultOf(value: unknown, text: string): ToolResult {
  if (value === undefined) return fail(`it printed no JSON value but ${quote(text.trim().slice(0, 80))}`)
  if (typeof value === 'string') return done(value)
  if (isObject(value) && Object.keys(value).every((key) => key === 'output' || key === 'error')) {
    const { output, error } = value
    if (typeof error === 'string') return fail(error, typeof output === 'string' ? output : '')
    if (typeof output === 'string') return done(output)
  }
  return done(JSON.stringify(value))
}

function report({ ended, stdout, stderr, bytes, flooded }: ProgramRun, stopped: boolean): ToolResult {
  if (!ended.ok) return fail(ended.message, stdout)
  const { code, signal, leftBehind, undone = [], refused = false, stopped: excess } = ended
  const complaint = stderr.trimEnd()
  const metadata = { exitCode: code, signal: signal ?? null, bytes, ...(leftBehind ? { leftBehind } : {}) }
  if (code === 0 && !stopped && !flooded && undone.length === 0)
    return done(stdout, complaint === '' ? metadata : { ...metadata, stderr: complaint.slice(0, KEPT_STDERR) })
  const how = excess ?? (signal === undefined ? `exit code ${code}` : `ended by ${signal}`)
  const why = flooded ? `stopped after printing more than ${FLOOD_BYTES} bytes` : complaint === '' ? how : `${how}: ${complaint}`
  const deniedBy = refused ? 'changes.direct' : undefined
  return { success: false, output: stdout, error: [why, ...undone].join('; '), metadata, deniedBy }
}

/** The executable's path in its folder, its real path, and the private copy whose bytes run. `folder`: what it may read, instead of the folders of both paths. */
export type Program = { readonly path: string; readonly real: string; readonly copy: string; readonly folder?: string }

export type ExecutableHost = {
  readonly spawn: Spawn
  readonly env: ChildEnvironment
  readonly workspace: string
  /** Resolves when `spawn` has what it prepares once, for example a sandbox that was tried. */
  readonly ready?: () => Promise<unknown>
}

type RunOptions = {
  readonly around: ExecutableHost
  readonly program: Program
  readonly argument?: string
  /** The text of its stdin; absent: it is empty. */
  readonly stdin?: string
  readonly signal: AbortSignal
  /** Bytes kept of each stream; a program that prints more than `flood` bytes is stopped. */
  readonly keep: number
  readonly flood: number
  /** Makes the workspace read-only. */
  readonly readOnly: boolean
}

export type ProgramRun = {
  readonly ended: SpawnResult
  readonly stdout: string
  readonly stderr: string
  readonly bytes: number
  readonly flooded: boolean
}

/**
 * Starts the program without a shell. The program may read its own folder, and BRAIDCLAW_TOOL_DIR names
 * that folder, because `$0` is the copy in a sandbox without mounts.
 */
export async function runExecutable({ around, program, argument, stdin, signal, keep, flood, readOnly }: RunOptions): Promise<ProgramRun> {
  const { path, real, copy, folder } = program
  const collectors = { stdout: createCollector(keep), stderr: createCollector(keep) }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const tooMuch = new AbortController()
  let bytes = 0
  const folders = folder === undefined ? [...new Set([dirname(path), dirname(real)])] : [folder]
  const input = stdin === undefined ? undefined : openContent(stdin)
  const ended = await around.spawn({
    argv: argument === undefined ? [path] : [path, argument],
    cwd: around.workspace,
    env: { ...around.env, BRAIDCLAW_TOOL_DIR: folder ?? dirname(path) },
    readablePaths: [...folders.map((path) => ({ path })), ...(copy === real ? [] : [{ path: real, from: copy }])],
    ...(input === undefined ? {} : { stdin: input }),
    readOnly,
    signal: AbortSignal.any([signal, tooMuch.signal]),
    onOutput(chunk, from) {
      bytes += chunk.length
      collectors[from].push(decoders[from].decode(chunk, { stream: true }))
      if (bytes > flood) tooMuch.abort()
    },
  })
  if (input !== undefined) closeSync(input)
  for (const from of ['stdout', 'stderr'] as const) collectors[from].push(decoders[from].decode())
  return { ended, stdout: collectors.stdout.text(), stderr: collectors.stderr.text(), bytes, flooded: tooMuch.signal.aborted }
}
