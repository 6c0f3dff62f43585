/** Describes what the gateway's routes answer, as far as this page reads it; docs/gateway.md describes all of it. */

import type { RunFacts, Snake } from '../../channels/http/answer-shapes.ts'
import type { ClaimMark } from '../../host/contract/claim-mark.ts'
import type { AskedApproval } from '../../host/events/host-event.ts'

/** `server`: a control plane says so; a gateway says nothing. */
export type Me = { readonly name: string; readonly scopes: readonly string[]; readonly server?: 'control' }

export type Approval = Omit<Snake<AskedApproval>, 'rule'> & {
  readonly state: 'open' | 'allowed' | 'denied' | 'used' | 'altered'
  /** Only of one question, not in the list. */
  readonly patch?: string
}

/** `ended` is absent while it runs. */
export type RunSummary = Readonly<RunFacts> & { readonly provider: string }

export type UsageShown = { readonly input_tokens: number; readonly output_tokens: number; readonly cost_micros?: number }

export type RunDetails = RunSummary & {
  readonly steps: readonly Step[]
  readonly usage?: UsageShown
  readonly digest?: string
  readonly proof: readonly ClaimMark[]
}

export type Step = { readonly seq: number; readonly at: number } & (
  | { readonly type: 'message'; readonly text: string }
  | { readonly type: 'reply'; readonly text: string; readonly thinking?: string; readonly cut?: string }
  | ({ readonly type: 'call' } & CallStep)
  | { readonly type: 'error'; readonly code: string; readonly message: string }
)

export type CallStep = {
  readonly call_id: string
  readonly tool: string
  readonly input: unknown
  readonly risk: string
  readonly verdict: 'allow' | 'ask' | 'deny'
  readonly rule: string
  readonly reason: string
  readonly summary: string
  readonly approvals: readonly {
    readonly about: string
    readonly decision?: { readonly allow: boolean; readonly by: string; readonly note?: string }
  }[]
  readonly outcome?: { readonly status: 'allowed' | 'denied' | 'failed'; readonly output: string; readonly error?: string }
  readonly receipt?: string
  readonly changes?: {
    readonly fate: 'applied' | 'dropped' | 'pending' | 'none' | 'direct'
    /** RUN/CALL: what the routes of changes take. */
    readonly set?: string
    readonly state?: string
    readonly summary?: string
    readonly count?: number
  }
}

export type Undone = {
  readonly ok: boolean
  readonly name: string
  readonly message?: string
  readonly conflicts?: readonly { readonly path: string; readonly reason: string }[]
}

export type ConversationSummary = { readonly id: string; readonly title: string; readonly updated: number; readonly turns: number }

export type Job = { readonly id: string; readonly command: string; readonly started: number; readonly state: 'running' | 'ended' }

export type Conversation = ConversationSummary & {
  readonly messages: readonly Message[]
  /** The run of the turn that is under way. */
  readonly running_run_id?: string
  /** All that happened up to this number is in `messages`. */
  readonly seq: number
}

export type Message = {
  readonly role: string
  readonly content: string
  readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[] | null
  readonly tool_results: readonly { readonly call_id: string; readonly status: string }[] | null
  readonly metadata: { readonly run_id?: string } | null
}

export const levels = ['readonly', 'supervised', 'auto', 'full'] as const

export type ToolFacts = {
  readonly name: string
  readonly description: string
  readonly risk: string
  readonly active: boolean
  readonly why?: string
  readonly source: string
}
