/** Collects what is known of a run when it has ended: the input of its manifest. */

import type { Task } from './task-shapes.ts'

export type RunFacts = {
  readonly task: Task
  readonly runId: string
  readonly attempt: number
  readonly agentId: string
  readonly role: string
  readonly runner: { readonly name: string; readonly version?: string; readonly model?: string }
  /** What the run was asked, and its SHA-256. */
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
  /** Receipts of the worker's own home, when the own runner worked. */
  readonly receipts?: { readonly ids: readonly string[]; readonly count?: number; readonly head?: string }
}
