/** What the gateway's routes answer, as far as this page reads it; docs/gateway.md describes all of it. */

import type { CallShown } from './parts/turn.tsx'

export type Me = { readonly name: string; readonly scopes: readonly string[] }

export type Status = {
  readonly version: string
  readonly autonomy: string
  readonly workspace: string
  readonly provider: string
  readonly model: string
  readonly channels: readonly string[]
  readonly estop: { readonly set: boolean; readonly reason?: string }
  readonly receipts: { readonly count: number; readonly head: string | null }
}

export type Approval = {
  readonly id: string
  readonly conversation_id: string
  readonly run_id: string
  readonly tool: string
  readonly risk: string
  readonly reason: string
  /** One line: the command, the path, the address. */
  readonly summary: string
  readonly created: number
  readonly expires: number
  readonly changes?: { readonly diff: string; readonly files: readonly { readonly path: string; readonly kind: string }[] }
}

export type RunSummary = {
  readonly id: string
  readonly conversation_id: string
  readonly message: string
  readonly channel: string
  readonly model: string
  readonly started: number
  /** Absent while it runs. */
  readonly ended?: number
  readonly code?: string
}

export type ConversationSummary = { readonly id: string; readonly title: string; readonly updated: number }

export type Conversation = ConversationSummary & {
  readonly turns: readonly { readonly role: string; readonly text: string; readonly calls?: readonly CallShown[] }[]
  /** The run of the turn that is under way. */
  readonly running_run_id?: string
}
