/** Defines the manifest of a run: who did what, with which versions, and what came out; docs/run-manifest.md describes every field. */

import { z } from 'zod'

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `must be ${2 * bytes} lower-case hex digits`)
const text = (most: number) => z.string().max(most)
const count = z.int().min(0)

/** Built when the first manifest is read or written. */
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
