/**
 * Explains, without running anything, what the gate decides about a command or call at each level of autonomy; `policy explain` prints it.
 */

import type { JsonObject } from '../kit/json.ts'
import type { Call, Judgement, Proposal } from '../runtime/event.ts'
import type { Tool } from '../runtime/port.ts'
import type { RuleFinding } from '../runtime/rules/explain.ts'
import { createGate, type GateOptions } from './gate.ts'
import type { Plan, PlannedCommand } from './plan.ts'
import { definePolicy, type Policy } from './policy.ts'
import { commandRules, meaningOf } from './rules.ts'

export type Level = Pick<Judgement, 'verdict' | 'rule' | 'reason'>

/** The levels as people choose them: `auto` is supervised with --auto. */
export const levelNames = ['readonly', 'supervised', 'auto', 'full'] as const
export type LevelName = (typeof levelNames)[number]

export type Explanation = Pick<Judgement, 'verdict' | 'risk' | 'rule' | 'reason' | 'summary' | 'writes' | 'labels'> & {
  /** The meaning of the rule in one line. */
  readonly meaning: string | undefined
  /** The operator's rules that look at such a call, whether they deny it or not. */
  readonly rules: readonly RuleFinding[]
  /** The plan that would be executed at the first level that allows the call; undefined when no level does. */
  readonly plan: Plan | undefined
  /** Where the command's changes go, in one sentence; absent for calls without a command. */
  readonly changes?: string
  /** The hosts that the command would reach. */
  readonly network: readonly string[]
  readonly level: LevelName
  readonly levels: { readonly [level in LevelName]: Level }
}

export type ExplainOptions = GateOptions & {
  /** The findings of the operator's own rules about a call that the gate has judged. */
  readonly rulesFor?: (proposal: Proposal) => readonly RuleFinding[]
}

/** Judges the command as the shell tool would be judged, even when the terminal has no shell tool. */
export async function explainCommand(options: ExplainOptions, command: string, cwd?: string): Promise<Explanation> {
  const { channel, toolsAllow } = options.policy
  const policy = definePolicy({ ...options.policy, toolsAllow: channel ? toolsAllow : undefined })
  const input: JsonObject = cwd === undefined ? { command } : { command, cwd }
  return explainCall({ ...options, policy, tools: [commandTool] }, { name: 'shell', input })
}

export async function explainCall(options: ExplainOptions, { name, input }: { name: string; input: JsonObject }): Promise<Explanation> {
  const call = { id: 'explain', name, input }
  const at = (name: LevelName) => ask(options, name, call)
  const [readonly, supervised, auto, full] = await Promise.all([at('readonly'), at('supervised'), at('auto'), at('full')])
  const level = levelOf(options.policy)
  const answer = { readonly, supervised, auto, full }[level]
  const { risk, summary, writes, labels } = answer.judgement
  const { rules } = answer
  const current = brief(answer)
  const levels = { readonly: brief(readonly), supervised: brief(supervised), auto: brief(auto), full: brief(full) }
  const plan = Object.values(levels).every(({ verdict }) => verdict === 'deny')
    ? undefined
    : (readonly.plan ?? supervised.plan ?? auto.plan ?? full.plan)
  const network = plan?.commands.flatMap(({ network: hosts = [], transfer }) => (transfer ? [transfer.host] : hosts)) ?? []
  const changes = plan?.commands[0] && (await changesOf(plan.commands[0], { level, options }))
  const more = changes === undefined ? {} : { changes }
  return { ...current, risk, summary, writes, labels, meaning: meaning(current, rules), rules, plan, ...more, network, level, levels }
}

export function levelOf({ autonomy, approveAllMedium }: Pick<Policy, 'autonomy' | 'approveAllMedium'>): LevelName {
  return autonomy === 'supervised' && approveAllMedium ? 'auto' : autonomy
}

type Where = { readonly level: LevelName; readonly options: GateOptions }

async function changesOf({ readOnly, view }: PlannedCommand, { level, options: { commands } }: Where): Promise<string> {
  if (readOnly) return 'none: the workspace is read-only for it'
  if (view === 'private') return `stay in a private view; ${afterwards[level]}`
  const mode = typeof commands === 'function' ? await commands() : commands
  const why = mode?.why === undefined || view === 'direct' ? '' : ` (no private views: ${mode.why})`
  return `reach the workspace while it runs${why}`
}

const afterwards: { readonly [level in LevelName]: string } = {
  readonly: 'they are dropped',
  supervised: 'they ask before they are applied',
  auto: 'harmless ones are applied, the others ask',
  full: 'they are applied, unless a rule forbids them',
}

function meaning({ rule }: Level, rules: readonly RuleFinding[]): string | undefined {
  const own = rules.find((one) => one.rule === rule)
  return own ? `A rule of the operator, in ${own.file}.` : meaningOf(rule, commandRules)
}

type GateAnswer = { readonly judgement: Judgement; readonly plan: Plan | undefined; readonly rules: readonly RuleFinding[] }

async function ask(options: ExplainOptions, level: LevelName, call: Call): Promise<GateAnswer> {
  const autonomy = level === 'auto' ? 'supervised' : level
  const approveAllMedium = level === 'auto'
  const gate = createGate({ ...options, policy: definePolicy({ ...options.policy, autonomy, approveAllMedium }) })
  const judgement = await gate.judge(call)
  return { judgement, plan: gate.plan(judgement.plan), rules: options.rulesFor?.({ call, judgement }) ?? [] }
}

/** An operator's rule can only deny a call that the gate allows. */
function brief({ judgement: { verdict, rule, reason }, rules }: GateAnswer): Level {
  const denial = verdict === 'deny' ? undefined : rules.find(({ denies }) => denies)
  return denial ? { verdict: 'deny', rule: denial.rule, reason: denial.reason } : { verdict, rule, reason }
}

/** Replaces the shell tool here: it declares the same touches and runs nothing. */
const commandTool: Tool = {
  name: 'shell',
  description: 'judges a command',
  parameters: { type: 'object', properties: { command: { type: 'string' }, cwd: { type: 'string' } }, required: ['command'] },
  risk: 'medium',
  timeoutMs: 0,
  idempotent: true,
  touches: ({ command, cwd }) => [{ kind: 'command', command: String(command), ...(typeof cwd === 'string' ? { cwd } : {}) }],
  invoke: async () => ({ success: false, output: '', error: 'this tool only explains' }),
}
