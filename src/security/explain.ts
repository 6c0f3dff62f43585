/**
 * Explains, without running anything, what the gate decides about a command or call at each level of autonomy; `policy explain` prints it.
 */

import type { JsonObject } from '../kit/json.ts'
import type { Call, Judgement, Proposal } from '../runtime/event.ts'
import type { Tool } from '../runtime/port.ts'
import type { RuleFinding } from '../runtime/rules/explain.ts'
import { commandRules } from './command/command-rules.ts'
import { createGate, type GateOptions } from './gate.ts'
import type { Plan } from './plan.ts'
import { type Autonomy, definePolicy } from './policy.ts'
import { meaningOf } from './rules.ts'

export type Level = Pick<Judgement, 'verdict' | 'rule' | 'reason'>

export type Explanation = Pick<Judgement, 'verdict' | 'risk' | 'rule' | 'reason' | 'summary' | 'writes' | 'labels'> & {
  /** The meaning of the rule in one line. */
  readonly meaning: string | undefined
  /** The operator's rules that look at such a call, whether they deny it or not. */
  readonly rules: readonly RuleFinding[]
  /** The plan that would be executed at the first level that allows the call; undefined when no level does. */
  readonly plan: Plan | undefined
  readonly levels: { readonly [level in Autonomy]: Level }
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
  const at = (autonomy: Autonomy) => ask(options, autonomy, call)
  const [readonly, supervised, full] = await Promise.all([at('readonly'), at('supervised'), at('full')])
  const answer = { readonly, supervised, full }[options.policy.autonomy]
  const { risk, summary, writes, labels } = answer.judgement
  const { rules } = answer
  const said = brief(answer)
  const levels = { readonly: brief(readonly), supervised: brief(supervised), full: brief(full) }
  const plan = Object.values(levels).every(({ verdict }) => verdict === 'deny')
    ? undefined
    : (readonly.plan ?? supervised.plan ?? full.plan)
  return { ...said, risk, summary, writes, ...(labels ? { labels } : {}), meaning: meaning(said, rules), rules, plan, levels }
}

function meaning({ rule }: Level, rules: readonly RuleFinding[]): string | undefined {
  const own = rules.find((one) => one.rule === rule)
  return own ? `A rule of the operator, in ${own.file}.` : meaningOf(rule, commandRules)
}

type Answer = { readonly judgement: Judgement; readonly plan: Plan | undefined; readonly rules: readonly RuleFinding[] }

async function ask(options: ExplainOptions, autonomy: Autonomy, call: Call): Promise<Answer> {
  const gate = createGate({ ...options, policy: definePolicy({ ...options.policy, autonomy }) })
  const judgement = await gate.judge(call)
  return { judgement, plan: gate.plan(judgement.plan), rules: options.rulesFor?.({ call, judgement }) ?? [] }
}

/** An operator's rule can only deny a call that the gate allows. */
function brief({ judgement: { verdict, rule, reason }, rules }: Answer): Level {
  const denial = verdict === 'deny' ? undefined : rules.find(({ denies }) => denies)
  return denial ? { verdict: 'deny', rule: denial.rule, reason: denial.reason } : { verdict, rule, reason }
}

/** Replaces the shell tool here: it declares the same touches and runs nothing. */
const commandTool: Tool = {
  name: 'shell',
  description: 'judges a command',
  parameters: {
    type: 'object',
    properties: { command: { type: 'string' }, cwd: { type: 'string' } },
    required: ['command'],
  },
  risk: 'medium',
  timeoutMs: 0,
  idempotent: true,
  touches: ({ command, cwd }) => [{ kind: 'command', command: String(command), ...(typeof cwd === 'string' ? { cwd } : {}) }],
  invoke: async () => ({ success: false, output: '', error: 'this tool only explains' }),
}
