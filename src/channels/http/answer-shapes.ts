/** Defines answers of the routes that the page reads whole; it imports their types. */

import { z } from '@hono/zod-openapi'

const verdict = z.enum(['allow', 'ask', 'deny'])
const words = z.array(z.string())
export const standingRule = z.object({
  id: z.int(),
  tool: z.string(),
  scope: z.string(),
  allows: z.string().openapi({ description: 'What it allows, in words' }),
  added_by: z.string(),
  added_at: z.int(),
  altered: z.literal(true).optional().openapi({ description: 'Somebody edited or inserted the row: it allows nothing' }),
})
export type AlwaysRule = z.infer<typeof standingRule>

const judged = z.object({ verdict, rule: z.string(), reason: z.string() })
export const explanation = z.object({
  verdict,
  risk: z.string(),
  rule: z.string(),
  reason: z.string(),
  summary: z.string(),
  meaning: z.string().nullable(),
  writes: words,
  changes: z.string().nullable().openapi({ description: 'Where the changes of the command go' }),
  network: words,
  rules: z.array(z.object({ rule: z.string(), file: z.string(), denies: z.boolean() })).openapi({ description: 'Your own rules about it' }),
  level: z.string(),
  levels: z.object({ readonly: judged, supervised: judged, auto: judged, full: judged }),
})
export type Explanation = z.infer<typeof explanation>

const byReason = z.array(z.object({ reason: z.string(), names: words }))
export const inForce = z.looseObject({
  level: z.enum(['readonly', 'supervised', 'auto', 'full']),
  workspace: z.string(),
  workspace_only: z.boolean(),
  commands: z.looseObject({
    confined: z.boolean(),
    transaction: z.boolean(),
    network: z.optional(z.boolean()),
    why: z.optional(z.string()),
  }),
  settings: z.object({
    ask: z.string(),
    unlisted_commands: z.string(),
    readonly_commands: z.string(),
    egress: z.string(),
    direct: z.string(),
  }),
  levels: z.array(z.object({ kind: z.string(), readonly: verdict, supervised: verdict, auto: verdict, full: verdict })),
  allow_commands: words,
  forbidden_commands: words,
  forbidden_paths: words,
  forbidden_reads: words,
  protected_paths: words,
  protected_names: byReason,
  asks_always: byReason,
  own_tools: words,
  network: z.object({ allowed_domains: words, ports: z.array(z.int()) }),
  tools: z.optional(words),
  standing_rules: z.int(),
})
export type PolicyShown = z.infer<typeof inForce>

export const status = z.object({
  version: z.string(),
  autonomy: z.enum(['readonly', 'supervised', 'full']),
  workspace: z.string(),
  provider: z.string(),
  model: z.string(),
  channels: z.array(z.string()),
  troubles: z.array(z.object({ channel: z.string(), state: z.enum(['out of reach', 'failed']), why: z.string(), since: z.int() })),
  estop: z.object({ stopped: z.boolean(), reason: z.string().nullable() }),
  receipts: z.object({ count: z.int(), head: z.string().nullable() }),
})
export type Status = z.infer<typeof status>

export const hit = z.object({
  conversation_id: z.string(),
  turn_id: z.string(),
  role: z.string(),
  at: z.int(),
  snippet: z.string(),
  score: z.number(),
})
export type Hit = z.infer<typeof hit>

export const pin = z.object({ number: z.int(), text: z.string(), at: z.string() })
export type Pin = z.infer<typeof pin>

export const mcpServer = z.object({
  id: z.string(),
  state: z.enum(['approved', 'not approved', 'changed', 'disabled']),
  origin: z.string().openapi({ description: 'The file that configures it' }),
  project: z.nullable(z.string()),
  transport: z.enum(['stdio', 'http', 'sse']),
  reached: z.string().openapi({ description: 'Its command line, or its address' }),
  permissions: z.object({ files: z.enum(['none', 'read', 'write']), folders: words, hosts: words, variables: words }),
  says: z.nullable(z.string()).openapi({ description: 'How the server names itself; null: it was never asked' }),
  tools: z.array(
    z.object({ name: z.string(), state: z.enum(['approved', 'not approved', 'changed', 'disabled', 'gone']), description: z.string() }),
  ),
  refused: z.array(z.object({ name: z.string(), why: z.string() })).openapi({ description: 'Definitions that are not offered, and why' }),
})
export type McpServerShown = z.infer<typeof mcpServerShown>
export const mcpServerShown = z.object({
  ...mcpServer.shape,
  seal: z.string().openapi({ description: 'An approval names it, so that it approves exactly what was shown' }),
  patch: z.string().openapi({ description: 'How the server differs from what was approved, as a unified diff' }),
})

export const scheduledRun = z.object({
  due: z.string(),
  started: z.string(),
  state: z.enum(['running', 'good', 'bad', 'interrupted', 'missed', 'skipped']),
  started_by: z.enum(['timer', 'hand']),
  attempt: z.int(),
  passed_over: z.int(),
  ended: z.string().nullable(),
  ending: z.string().nullable(),
  message: z.string().nullable(),
  check: z.string().nullable(),
  run_id: z.string().nullable(),
  conversation_id: z.string().nullable(),
  tokens: z.int().nullable(),
  cost_micros: z.int().nullable(),
  sent: z.string().nullable(),
})
export type ScheduledRun = z.infer<typeof scheduledRun>

export const schedule = z.object({
  id: z.string(),
  name: z.string(),
  state: z.enum(['active', 'paused', 'done']),
  why: z.string().nullable(),
  kind: z.enum(['at', 'every', 'cron']),
  when: z.string(),
  zone: z.string(),
  next: z.array(z.string()),
  message: z.string(),
  workspace: z.string(),
  agent: z.string().nullable(),
  autonomy: z.string().nullable(),
  conversation: z.enum(['new', 'same']),
  channel: z.string().nullable(),
  to: z.string().nullable(),
  check: z.string().nullable(),
  missed: z.enum(['run-once', 'skip', 'run-all']),
  overlap: z.enum(['skip', 'wait']),
  pause_after: z.int(),
  failures: z.int(),
  created: z.string(),
  last: z.nullable(scheduledRun),
})
export type Schedule = z.infer<typeof schedule>

const amounts = {
  calls: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().openapi({ description: 'Of input_tokens: read from the cache of the provider' }),
  cached_share: z.number().openapi({ description: 'cached_tokens as a share of input_tokens, from 0 to 1' }),
  unsettled_tokens: z.int().openapi({ description: 'Reserved for calls that were never settled; they count as spent' }),
  tokens: z.int().openapi({ description: 'All that counts' }),
  cost_micros: z.int().openapi({ description: 'Millionths of a US dollar, without the calls of unknown price' }),
  unpriced_calls: z.int(),
  estimated_calls: z.int(),
  unsettled_calls: z.int(),
  lost_calls: z.int().openapi({ description: 'Broken off with nothing reserved: what they used is not known' }),
}

/** A report says besides what its rows add up (`by`). */
export const costReport = z.object({
  days: z.int(),
  from: z.string(),
  to: z.string(),
  rows: z.array(z.object({ key: z.string(), title: z.string().nullable(), ...amounts })),
  more: z.int(),
  total: z.object(amounts),
  reserved: z.object({ tokens: z.int(), cost_micros: z.int() }),
  limits: z.array(
    z.object({
      scope: z.string(),
      setting: z.string(),
      unit: z.enum(['tokens', 'micros']),
      spent: z.int(),
      reserved: z.int(),
      limit: z.int(),
      left: z.int(),
      free_at: z.string().nullable(),
    }),
  ),
  day_ahead: z.string().nullable(),
})
export type CostReport = z.infer<typeof costReport>

export const runFacts = z.looseObject({
  id: z.string(),
  conversation_id: z.string(),
  channel: z.string(),
  model: z.string(),
  prompt: z.optional(z.string().openapi({ description: 'What it was asked, shortened' })),
  started: z.int(),
  ended: z.optional(z.int()),
  code: z.optional(z.string()),
  message: z.optional(z.string()),
  running: z.boolean(),
})
export type RunFacts = z.infer<typeof runFacts>

const sopState = z.enum(['running', 'waiting', 'asked', 'done', 'failed', 'cancelled'])
export const sopShape = z.object({
  name: z.string(),
  description: z.string(),
  where: z.enum(['home', 'workspace']),
  steps: z.int(),
  problems: words,
  triggers: words,
  trigger_state: z.enum(['none', 'off', 'enabled', 'changed', 'untrusted']),
})
export type SopFacts = z.infer<typeof sopShape>
export const sopDetails = z.object({
  ...sopShape.shape,
  path: z.string(),
  inputs: z.record(z.string(), z.object({ description: z.string(), default: z.string().optional() })),
  plan: z.array(z.looseObject({ id: z.string(), kind: z.enum(['tool', 'agent', 'approval']), tool: z.string(), prompt: z.string() })),
})
export type SopDetails = z.infer<typeof sopDetails>
export const sopRun = z.looseObject({
  ...{
    id: z.string(),
    name: z.string(),
    state: sopState,
    why: z.string(),
    started_by: z.string(),
    started: z.int(),
    ended: z.int().nullable(),
  },
  inputs: z.record(z.string(), z.string()),
  outputs: z.record(z.string(), z.string()),
})
const sopStep = z.looseObject({
  ...{ step: z.string(), state: z.string(), attempt: z.int(), output: z.string(), why: z.string(), question: z.string().nullable() },
  conversation_id: z.string().nullable(),
})
export const sopRunDetails = z.looseObject({ ...sopRun.shape, steps: z.array(sopStep) })
export type SopRunFacts = z.infer<typeof sopRun>
export type SopRunDetails = z.infer<typeof sopRunDetails>

/** Spells the names of a record's own fields as the gateway's JSON does: `conversationId` becomes `conversation_id`. */
type Spelled<Name> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Spelled<Tail>}`
  : Name

export type Snake<T> = { -readonly [Name in keyof T as Spelled<Name>]: T[Name] }
