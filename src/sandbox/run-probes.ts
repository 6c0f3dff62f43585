/** Tries to break out of a sandbox in every known way, for real, and reports which layer stopped each attempt. */

import { atEnd } from '../kit/errors.ts'
import type { Sandbox } from './contract.ts'
import { type EscapeAttempt, type Field, sh } from './probe/attempt.ts'
import { fileAttempts } from './probe/files.ts'
import { kernelAttempts } from './probe/kernel.ts'
import { networkAttempts } from './probe/network.ts'
import { type Ground, openOutside } from './probe/probe-fixture.ts'
import { processAttempts } from './probe/processes.ts'
import { fixedPath } from './trial-key.ts'

/** `layer` is `none` when the attempt succeeded. A skipped attempt proves nothing: it was neither stopped nor successful. */
export type ProbeResult = {
  readonly attempt: string
  readonly stopped: boolean
  readonly layer: string
  readonly detail: string
  readonly skipped?: true
}

export type ProbeQuestion = {
  /** Create the sandbox with `ground.settings`. */
  readonly ground: Ground
  /** Names of the attempts to run; all when absent. */
  readonly only?: readonly string[]
}

const ATTEMPT_MS = 15_000
/** An environment variable that a careless sandbox would pass on to the command. */
const CANARY_VARIABLE = 'BRAIDCLAW_PROBE_CANARY'

export const attempts: readonly EscapeAttempt[] = [...fileAttempts, ...processAttempts, ...networkAttempts, ...kernelAttempts]

/** Runs the attempts one after another, some two seconds in all. Everything that a broken sandbox could damage lies in `ground`. */
export async function probeSandbox(sandbox: Sandbox, { ground, only }: ProbeQuestion): Promise<ProbeResult[]> {
  const outside = await openOutside(ground)
  process.env[CANARY_VARIABLE] = ground.token
  using _end = atEnd(() => {
    delete process.env[CANARY_VARIABLE]
    outside.stop()
  })
  const env = { PATH: fixedPath, HOME: ground.settings.home, LANG: 'C.UTF-8' }
  const bare = { ground, outside, name: sandbox.name, env, filtered: false }
  const status = await run({ sandbox, field: bare, argv: sh('cat /proc/self/status') })
  const field = { ...bare, filtered: /Seccomp:\s*2/.test(status.output) }
  const results: ProbeResult[] = []
  for (const attempt of attempts.filter(({ name }) => only?.includes(name) ?? true)) results.push(await tryOut({ sandbox, field, attempt }))
  return results
}

type Trying = { readonly sandbox: Sandbox; readonly field: Field; readonly attempt: EscapeAttempt }

async function tryOut({ sandbox, field, attempt }: Trying): Promise<ProbeResult> {
  const missing = attempt.needs?.find((program) => Bun.which(program, { PATH: fixedPath }) === null)
  const skip = (detail: string): ProbeResult => ({ attempt: attempt.name, stopped: false, layer: 'none', detail, skipped: true })
  if (missing !== undefined) return skip(`skipped: ${missing} is not installed`)
  const { ended, output } = await run({ sandbox, field, argv: attempt.argv(field) })
  if (!ended.ok) return skip(`skipped: ${ended.message}`)
  return { attempt: attempt.name, ...(await attempt.judge({ output, code: ended.code, field })) }
}

async function run({ sandbox, field, argv }: { readonly sandbox: Sandbox; readonly field: Field; readonly argv: readonly string[] }) {
  const pieces: Uint8Array[] = []
  const ended = await sandbox.spawn({
    argv,
    cwd: field.ground.settings.workspace,
    env: field.env,
    signal: AbortSignal.timeout(ATTEMPT_MS),
    onOutput: (chunk) => void pieces.push(chunk.slice()),
  })
  return { ended, output: Buffer.concat(pieces).toString() }
}
