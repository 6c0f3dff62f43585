/** What the routes about tools and rules answer, as far as the page reads it. */

export type Verdict = 'allow' | 'ask' | 'deny'

export const levels = ['readonly', 'supervised', 'auto', 'full'] as const
export type Level = (typeof levels)[number]

export type ToolFacts = {
  readonly name: string
  readonly description: string
  readonly risk: string
  readonly active: boolean
  readonly why?: string
  readonly source: string
}

export type AlwaysRule = {
  readonly id: number
  readonly tool: string
  readonly allows: string
  readonly added_by: string
  readonly added_at: number
  readonly altered?: true
}

type ByReason = readonly { readonly reason: string; readonly names: readonly string[] }[]

export type PolicyShown = {
  readonly level: Level
  readonly workspace: string
  readonly workspace_only: boolean
  readonly commands: { readonly confined: boolean; readonly transaction: boolean; readonly network?: boolean; readonly why?: string }
  readonly settings: { readonly [name: string]: string }
  readonly levels: readonly ({ readonly kind: string } & { readonly [level in Level]: Verdict })[]
  readonly allow_commands: readonly string[]
  readonly forbidden_commands: readonly string[]
  readonly forbidden_paths: readonly string[]
  readonly forbidden_reads: readonly string[]
  readonly protected_paths: readonly string[]
  readonly protected_names: ByReason
  readonly asks_always: ByReason
  readonly network: { readonly allowed_domains: readonly string[]; readonly ports: readonly number[] }
}

export type Explanation = {
  readonly verdict: Verdict
  readonly risk: string
  readonly rule: string
  readonly reason: string
  readonly summary: string
  readonly meaning: string | null
  readonly changes: string | null
  readonly network: readonly string[]
  readonly rules: readonly { readonly rule: string; readonly file: string; readonly denies: boolean }[]
  readonly level: Level
  readonly levels: { readonly [level in Level]: { readonly verdict: Verdict; readonly rule: string; readonly reason: string } }
}
