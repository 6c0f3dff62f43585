/** One run of an executable in the sandbox: what it printed, apart and limited, and how it ended. */

import { dirname } from 'node:path'
import { createCollector } from '../output-limit.ts'
import type { Ended, Environment, Spawn } from '../process.ts'

/** As it lies in its folder, and the private copy whose bytes are run. */
export type Program = { readonly path: string; readonly real: string; readonly copy: string }

export type HostOptions = { readonly spawn: Spawn; readonly env: Environment; readonly workspace: string }

export type Running = {
  readonly around: HostOptions
  readonly program: Program
  readonly argument: string
  readonly signal: AbortSignal
  /** Of each stream; whoever prints `flood` bytes is stopped. */
  readonly keep: number
  readonly flood: number
  /** The workspace cannot be written. */
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
 * No shell, one argument, nothing on stdin. The folder of the executable can be read, and is named in BRAIDCLAW_TOOL_DIR: where a sandbox has
 * no mounts, `$0` is the copy.
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
