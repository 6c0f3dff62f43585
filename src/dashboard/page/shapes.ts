/** Names what the gateway's routes answer, as far as this page reads it; docs/gateway.md describes all of it. */

import type { Snake } from '../../channels/http/gateway.ts'
import type * as facts from '../../host/contract/records-api.ts'
import type { PolicyInForce } from '../../host/toolset/policy-in-force.ts'
import type { Approval as StoredApproval } from '../../memory/approval-table.ts'
import type { Usage } from '../../runtime/event.ts'

/** `server`: a control plane says so; a gateway says nothing. */
export type Me = { readonly name: string; readonly scopes: readonly string[]; readonly server?: 'control' }

/** `patch`: only of one question, not in the list. */
export type Approval = Snake<Omit<StoredApproval, 'changes'>> & { readonly about: 'call' | 'changes'; readonly patch?: string }

export type RunSummary = Snake<Omit<facts.RunFacts, 'runId'>> & { readonly id: string }

export type UsageShown = Snake<Usage>

export type RunDetails = RunSummary & { readonly steps: readonly Step[]; readonly usage?: UsageShown; readonly digest?: string }

export type Step = Steps<facts.TranscriptStep>

/** Spells each kind of step by itself. */
type Steps<Each> = Each extends unknown ? Snake<Each> : never

export type CallStep = Extract<Step, { type: 'call' }>

export type Undone = { readonly ok: boolean; readonly name: string; readonly message?: string; readonly conflicts?: readonly Conflict[] }

type Conflict = { readonly path: string; readonly reason: string }

export type ConversationSummary = Omit<facts.ConversationFacts, 'conversationId'> & { readonly id: string }

export type Job = { readonly id: string; readonly command: string; readonly started: number; readonly state: 'running' | 'ended' }

/** `running_run_id`: the run of the turn that is under way. All that happened up to `seq` is in `messages`. */
export type Conversation = ConversationSummary & {
  readonly messages: readonly Message[]
  readonly running_run_id?: string
  readonly seq: number
}

export type Message = {
  readonly role: string
  readonly content: string
  readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[] | null
  readonly tool_results: readonly { readonly call_id: string; readonly status: string }[] | null
  readonly metadata: { readonly run_id?: string } | null
}

export type Verdict = 'allow' | 'ask' | 'deny'

export const levels = ['readonly', 'supervised', 'auto', 'full'] as const

export type ToolFacts = Omit<facts.ToolFacts, 'parameters'>

export type PolicyShown = Snake<Omit<PolicyInForce, 'settings' | 'network'>> & {
  readonly settings: { readonly [name: string]: string }
  readonly network: Snake<PolicyInForce['network']>
}
