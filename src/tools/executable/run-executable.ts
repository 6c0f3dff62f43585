/** Runs an executable once in the sandbox, and returns its limited stdout and stderr separately, with its exit status. */

import { dirname } from 'node:path'
import { createCollector } from '../output-limit.ts'
import type { Ended, Environment, Spawn } from '../process.ts'

/** The executable's path in its folder, its real path, and the private copy whose bytes run. */
export type Program = { readonly path: string; readonly real: string; readonly copy: string }

export type ExecutableHost = {
  readonly spawn: Spawn
  readonly env: Environment
  readonly workspace: string
  /** Resolves when `spawn` has what it prepares once, for example a sandbox that was tried. */
  readonly ready?: () => Promise<unknown>
}

export type Running = {
  readonly around: ExecutableHost
  readonly program: Program
  readonly argument: string
  readonly signal: AbortSignal
  /** Bytes kept of each stream; a program that prints more than `flood` bytes is stopped. */
  readonly keep: number
  readonly flood: number
  /** Makes the workspace read-only. */
  readonly readOnly: boolean
}

export type Run = {
  readonly ended: Ended
  readonly stdout: string
  readonly stderr: string
  readonly bytes: number
  readonly flooded: boolean
}

/**
 * Starts the program without a shell, with one argument and no stdin. The program may read its own folder, and BRAIDCLAW_TOOL_DIR names
 * that folder, because `$0` is the copy in a sandbox without mounts.
 */
export async function runExecutable({ around, program, argument, signal, keep, flood, readOnly }: Running): Promise<Run> {
  const { path, real, copy } = program
  const kept = { stdout: createCollector(keep), stderr: createCollector(keep) }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const tooMuch = new AbortController()
  let bytes = 0
  const folders = [...new Set([dirname(path), dirname(real)])]
  const ended = await around.spawn({
    argv: [path, argument],
    cwd: around.workspace,
    env: { ...around.env, BRAIDCLAW_TOOL_DIR: dirname(path) },
    readablePaths: [...folders.map((folder) => ({ path: folder })), { path: real, from: copy }],
    readOnly,
    signal: AbortSignal.any([signal, tooMuch.signal]),
    onOutput(chunk, from) {
      bytes += chunk.length
      kept[from].push(decoders[from].decode(chunk, { stream: true }))
      if (bytes > flood) tooMuch.abort()
    },
  })
  for (const from of ['stdout', 'stderr'] as const) kept[from].push(decoders[from].decode())
  return { ended, stdout: kept.stdout.text(), stderr: kept.stderr.text(), bytes, flooded: tooMuch.signal.aborted }
}
