/** Defines the manifest of a run: who did what, with which versions, and what came out; docs/run-manifest.md describes every field. */

import { z } from 'zod'
import { canonical } from '../../kit/json.ts'
import { digest, sha256 } from '../../kit/sha256.ts'
import type { RunFacts } from '../contract/run-shapes.ts'
import type { AgentKey } from './agent-key.ts'

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `must be ${2 * bytes} lower-case hex digits`)
const text = (most: number) => z.string().max(most)
const count = z.int().min(0)

/** Builds the schemas when the first manifest is read or written. */
export function manifestSchemas() {
  const digest = hex(32)
  const content = {
    format: z.literal('braidclaw.run-manifest'),
    version: z.literal(1),
    run_id: text(24),
    attempt: count,
    task: z.strictObject({
      task_id: text(24),
      title: text(500),
      created_by: text(200),
      description_digest: digest,
      context_digest: digest,
      prompt_digest: digest,
    }),
    by: z.strictObject({ agent_id: text(64), role: text(64), host: text(255) }),
    with: z.strictObject({
      braidclaw: text(64),
      runner: text(64),
      runner_version: z.nullable(text(200)),
      model: z.nullable(text(200)),
      platform: text(64),
      confinement: text(1000),
    }),
    began_at: z.iso.datetime(),
    ended_at: z.iso.datetime(),
    outcome: z.strictObject({ status: text(64), skill: text(200), output_digest: digest, exit_code: z.nullable(z.int()) }),
    tokens: count,
    changes: z.strictObject({ state: text(32), digest: z.nullable(text(200)) }),
    artifacts: z.array(z.strictObject({ name: text(255).min(1), digest, bytes: count })).max(64),
    receipts: z.nullable(z.strictObject({ ids: z.array(text(100)).max(1000), count: z.nullable(count), head: z.nullable(text(300)) })),
    log: z.strictObject({ bytes: count, digest, truncated: z.boolean() }),
  }
  const signature = { algorithm: z.literal('Ed25519'), public_key: hex(32) }
  const signed = z.strictObject({ ...content, signature: z.strictObject({ ...signature, value: hex(64) }) })
  return { content: z.strictObject(content), signed }
}

type Schemas = ReturnType<typeof manifestSchemas>
export type RunManifest = z.infer<Schemas['content']>
export type SignedManifest = z.infer<Schemas['signed']>

/** Prevents that the signature of a manifest fits another kind of text. */
const purpose = 'braidclaw run manifest 1\n'

/** @throws ZodError for a manifest that breaks the format: a bug of the caller */
export function signManifest(manifest: RunManifest, key: AgentKey): SignedManifest {
  const content = manifestSchemas().content.parse(manifest)
  const signature = { algorithm: 'Ed25519', public_key: key.publicKey } as const
  const value = key.sign(signedBytes({ ...content, signature: { ...signature, value: '' } }))
  return { ...content, signature: { ...signature, value } }
}

/** Returns everything but the signature itself; the key is part of it. */
export function signedBytes({ signature: { algorithm, public_key }, ...content }: SignedManifest): Uint8Array {
  return new TextEncoder().encode(`${purpose}${canonical({ ...content, signature: { algorithm, public_key } })}`)
}

/** Returns the only valid text of a manifest in a file. */
export function manifestText(manifest: SignedManifest): string {
  return `${canonical(manifest)}\n`
}

type ManifestMaker = {
  readonly key: AgentKey
  readonly host: string
  /** The version of braidclaw. */
  readonly version: string
  /** For example linux-x64. */
  readonly platform: string
}

/** Makes the worker's option `manifest`. */
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
