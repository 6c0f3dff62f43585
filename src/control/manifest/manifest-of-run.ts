/** Makes the manifest of a run from what its worker knows when it has ended. */

import { digest } from '../../kit/digest.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { RunFacts } from '../contract/run-facts.ts'
import type { AgentKey } from './agent-key.ts'
import type { RunManifest, SignedManifest } from './run-manifest.ts'
import { signManifest } from './sign-manifest.ts'

export type ManifestMaker = {
  readonly key: AgentKey
  readonly host: string
  /** The version of braidclaw. */
  readonly version: string
  /** Such as linux-x64. */
  readonly platform: string
}

/** For the worker's option `manifest`. */
export function manifestMaker(maker: ManifestMaker): (run: RunFacts) => Promise<SignedManifest> {
  return async (run) => signManifest(manifestOfRun(run, maker), maker.key)
}

function manifestOfRun(facts: RunFacts, { host, version, platform }: ManifestMaker): RunManifest {
  const { task, runner, changes, receipts } = facts
  return {
    format: 'braidclaw.run-manifest',
    version: 1,
    run_id: facts.runId,
    attempt: facts.attempt,
    task: {
      task_id: task.task_id,
      title: task.title,
      created_by: task.created_by.slice(0, 200),
      description_digest: sha256(task.description),
      context_digest: digest(task.context),
      prompt_digest: facts.prompt.digest,
    },
    by: { agent_id: facts.agentId, role: facts.role, host },
    with: {
      braidclaw: version,
      runner: runner.name,
      runner_version: runner.version ?? null,
      model: runner.model ?? null,
      platform,
      confinement: facts.confinement,
    },
    began_at: facts.beganAt,
    ended_at: facts.endedAt,
    outcome: { status: facts.status, skill: facts.skill, output_digest: sha256(facts.output), exit_code: facts.exitCode ?? null },
    tokens: facts.tokensReported,
    changes: { state: changes.state, digest: changes.digest ?? null },
    artifacts: facts.artifacts.map(({ name, digest, bytes }) => ({ name, digest, bytes })),
    receipts: receipts ? { ids: [...receipts.ids], count: receipts.count ?? null, head: receipts.head ?? null } : null,
    log: facts.log,
  }
}
