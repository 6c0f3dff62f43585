/** Defines runs (one claim of one task), their logs, artifacts and sessions as they travel as JSON. */

import { z } from 'zod'
import { runStates } from './state-names.ts'
import { name, runId, type Task, taskId } from './task-shapes.ts'

/** Leaves out the manifest, which may have 256 KiB, for lists. */
export const listedRun = z.object({
  run_id: z.string(),
  task_id: z.string(),
  task_title: z.string(),
  agent_id: z.string(),
  role: z.string(),
  attempt: z.int(),
  state: z.enum(runStates),
  began_at: z.string(),
  ended_at: z.nullable(z.string()),
  last_beat_at: z.string(),
  tokens_used: z.int(),
  skill: z.nullable(z.string()),
  error: z.nullable(z.string()),
  log_bytes: z.int(),
  log_truncated: z.boolean(),
  has_manifest: z.boolean(),
  artifacts: z.array(z.object({ name: z.string(), digest: z.string(), bytes: z.int() })),
  /** `none`, `waiting` for a person, `applied` or `dropped`. */
  changes: z.nullable(z.enum(['none', 'waiting', 'applied', 'dropped'])),
})
export type ListedRun = z.infer<typeof listedRun>

export const run = z.object({
  ...listedRun.shape,
  /** The signed manifest, once the worker delivered it (docs/run-manifest.md). */
  manifest: z.nullable(z.record(z.string(), z.unknown())),
})
export type Run = z.infer<typeof run>

export const runQuery = z.object({
  task_id: z.optional(taskId),
  agent_id: z.optional(name),
  state: z.optional(z.enum(runStates)),
  limit: z.int().min(1).max(200).default(50),
  after: z.optional(runId),
})
export type RunQuery = z.infer<typeof runQuery>

/** Describes a line of `CONTROLPLANE_SESSION_CWD/{agent}.jsonl` as the seed defines it, including the order of keys. */
export const sessionLine = z.object({
  timestamp: z.string(),
  task: z.string(),
  skill: z.string(),
  outcome: z.string(),
  tokens_used: z.int(),
})
export type SessionLine = z.infer<typeof sessionLine>

export type RunFacts = {
  readonly task: Task
  readonly runId: string
  readonly attempt: number
  readonly agentId: string
  readonly role: string
  readonly runner: { readonly name: string; readonly version?: string; readonly model?: string }
  /** The prompt of the run, and its SHA-256. */
  readonly prompt: { readonly text: string; readonly digest: string }
  readonly skill: string
  readonly status: 'success' | 'failed'
  readonly output: string
  readonly tokensReported: number
  readonly beganAt: string
  readonly endedAt: string
  readonly confinement: string
  readonly exitCode?: number
  readonly log: { readonly bytes: number; readonly digest: string; readonly truncated: boolean }
  readonly changes: { readonly state: 'none' | 'waiting' | 'dropped'; readonly digest?: string; readonly summary?: string }
  readonly artifacts: readonly { readonly name: string; readonly digest: string; readonly bytes: number }[]
  /** The receipts of the worker's own home, when BraidClaw itself was the runner. */
  readonly receipts?: { readonly ids: readonly string[]; readonly count?: number; readonly head?: string }
}
