/** The gate: every tool call of every entrance is judged here, and what was judged is kept so that exactly that is executed. */

import type { JsonObject } from '../kit/json.ts'
import { cut, visible } from '../kit/text.ts'
import type { Call, Judgement, Risk } from '../runtime/event.ts'
import type { Judge, Tool } from '../runtime/port.ts'
import { alwaysKey } from './always.ts'
import { type Permission, permit } from './autonomy.ts'
import { type Plan, planHash, refusalHash, summarise } from './plan.ts'
import type { Policy } from './policy.ts'
import { precheck } from './precheck.ts'
import { lookForSecrets, type SecretLook } from './redaction/secret-call.ts'
import { highest, type Rating } from './risk.ts'
import type { Sight } from './targets/link.ts'
import { createValidator, type Validator } from './tool-arguments.ts'
import { type Finding, judgeTouch } from './touch.ts'

export type GateOptions = {
  readonly policy: Policy
  readonly tools: readonly Tool[]
  /** The reason of the emergency stop, or undefined. Asked anew for each call; throwing counts as stopped. */
  readonly estop: () => string | undefined
  /** Where an executable lies on the fixed PATH. */
  readonly resolve: (name: string) => string | undefined
  /** Where links lead; without it paths are judged by their text alone. */
  readonly sight?: Sight
  readonly conversation: string
  /** Whether the operator said "always" to this key (always.ts). */
  readonly always?: (key: string) => boolean
  /** Canonical names (real paths) for what is written, so that two spellings of one file take turns. */
  readonly writesOf?: (writes: readonly string[]) => readonly string[]
  /** Digests of the files that would be overwritten; part of the plan, so that an approval dies when one changes. */
  readonly targetsOf?: (writes: readonly string[]) => Promise<JsonObject>
  readonly envHash?: string
  /** Looks for registered secrets; absent where there are none to look for. */
  readonly secrets?: SecretLook
}

export type Gate = {
  /**
   * Never throws. Judging a call again right before it is executed gives the same plan hash, unless the stop, the policy or a target
   * changed: that is the second look SECURITY.md asks for.
   */
  readonly judge: Judge
  /**
   * Whether judging the call again would give this plan for certain: it was given out here for this very input, only reads places that the
   * policy names, and no stop is set. Everything else (writes, commands, addresses) has to be judged again.
   */
  holds(call: Call, hash: string): boolean
  /** The analysed plan behind a judgement's hash; undefined for refused calls and for hashes this gate never gave out (or long ago). */
  plan(hash: string): Plan | undefined
}

const plansKept = 1000

/** @throws Error when two tools share a name: the gate could judge one and the executor run the other. */
export function createGate(options: GateOptions): Gate {
  const desk: GateState = { ...options, byName: byName(options.tools), validate: createValidator(), plans: new Map<string, Plan>() }
  return {
    judge: async (call) => {
      try {
        return await judgeCall(call, desk)
      } catch (error) {
        const reason = `the gate failed (${cut(visible(String(error)), 300)}); nothing was run`
        return refusal({ call: options.secrets?.json(call) ?? call, desk, rule: 'gate.error', risk: 'high', reason })
      }
    },
    holds: (call, hash) => holds(call, desk.plans.get(hash), desk),
    plan: (hash) => desk.plans.get(hash),
  }
}

type GateState = GateOptions & {
  readonly byName: ReadonlyMap<string, Tool>
  readonly validate: Validator
  readonly plans: Map<string, Plan>
}

/** Reading what the policy names rests on nothing but the input, the policy and the stop, and of these only the stop can change. */
function holds(call: Call, plan: Plan | undefined, { estop }: GateState): boolean {
  if (plan === undefined || call.name !== plan.tool || call.input !== plan.input || call.malformed !== undefined) return false
  const isReading = plan.paths.every(({ access }) => access === 'read') && plan.urls.length === 0 && plan.commands.length === 0
  try {
    // The hash once more: somebody may have written into the input.
    return isReading && planHash(plan) === plan.hash && estop() === undefined
  } catch {
    return false
  }
}

type Accepted = Extract<Finding, { ok: true }>

async function judgeCall(asked: Call, desk: GateState): Promise<Judgement> {
  const tool = desk.byName.get(asked.name)
  const { call, hidden } = lookForSecrets(asked, tool, desk.secrets)
  const turned = precheck({ call, tool, estop: desk.estop, usable: usable(desk) })
  if (turned) return refusal({ call, desk, risk: tool?.risk ?? 'high', ...turned })
  if (!tool) throw new Error('an unknown tool was let through')
  if (hidden) return refusal({ call, desk, risk: 'high', ...hidden })
  const valid = await desk.validate(tool.parameters, call.input)
  if (!valid.ok) return refusal({ call, desk, risk: tool.risk, rule: 'schema.invalid', reason: `${visible(call.name)}: ${valid.message}` })
  const findings = await Promise.all(tool.touches(call.input).map((touch) => judgeTouch(touch, desk)))
  const forbidden = findings.find((finding) => !finding.ok)
  if (forbidden && !forbidden.ok) return refusal({ call, desk, risk: 'high', rule: forbidden.rule, reason: forbidden.reason })
  return decide({ call, tool, desk, findings: findings.filter((finding) => finding.ok) })
}

type Judged = { readonly call: Call; readonly tool: Tool; readonly desk: GateState; readonly findings: readonly Accepted[] }

async function decide({ call, tool, desk, findings }: Judged): Promise<Judgement> {
  const plan = await planOf({ call, desk, findings })
  const rating = rate(tool, findings)
  const reads = findings.every((finding) => finding.reads)
  const permission = permit({ rating, reads, harmless: harmless(findings), always: said(plan, desk) }, desk.policy)
  if (permission.verdict !== 'deny') keep(plan, desk.plans)
  return judgement({ call, plan, rating, permission, writes: writesOf(findings, desk) })
}

async function planOf({ call, desk, findings }: Omit<Judged, 'tool'>): Promise<Plan> {
  const body = {
    tool: call.name,
    input: call.input,
    paths: findings.flatMap(({ path }) => path ?? []),
    urls: findings.flatMap(({ url }) => url ?? []),
    commands: findings.flatMap(({ command }) => command ?? []),
    targets: (await desk.targetsOf?.(findings.flatMap(({ writes }) => writes))) ?? {},
    envHash: desk.envHash ?? '',
    policyVersion: desk.policy.version,
    conversation: desk.conversation,
  }
  return { ...body, hash: planHash(body), always: findings.length === 1 ? findings[0]?.always : undefined }
}

function judgement(of: { call: Call; plan: Plan; rating: Rating; permission: Permission; writes: readonly string[] }): Judgement {
  const { verdict, rule, reason } = of.permission
  return { verdict, risk: of.rating.risk, rule, reason, plan: of.plan.hash, summary: summarise(of.call, of.plan), writes: of.writes }
}

function refusal({ call, desk, risk, rule, reason }: { call: Call; desk: GateState; risk: Risk; rule: string; reason: string }): Judgement {
  return { verdict: 'deny', risk, rule, reason, plan: refusalHash(call, desk.conversation), summary: summarise(call), writes: [] }
}

/** Reasons of what is touched come first; the declared risk is named only when it is the higher one. */
function rate(tool: Tool, findings: readonly Accepted[]): Rating {
  const [first, ...rest] = findings.map((finding) => finding.rating)
  if (!first) return { risk: tool.risk, reason: 'touches neither files, commands nor the network' }
  return highest(first, [...rest, { risk: tool.risk, reason: `${tool.name} is declared ${tool.risk} risk` }])
}

/** Every command of the call must be harmless; undefined when it has none. */
function harmless(findings: readonly Accepted[]): boolean | undefined {
  const commands = findings.filter((finding) => finding.command !== undefined)
  return commands.length === 0 ? undefined : commands.every((finding) => finding.harmless === true)
}

function said(plan: Plan, desk: GateState): boolean {
  return plan.always !== undefined && desk.always?.(alwaysKey(plan.always)) === true
}

function writesOf(findings: readonly Accepted[], desk: GateState): readonly string[] {
  const writes = [...new Set(findings.flatMap((finding) => finding.writes))]
  return writes.length === 0 ? writes : (desk.writesOf?.(writes) ?? writes)
}

/** The oldest go first; an executor that finds none refuses, so forgetting is safe. */
function keep(plan: Plan, plans: Map<string, Plan>): void {
  plans.delete(plan.hash)
  plans.set(plan.hash, plan)
  for (const oldest of plans.keys()) if (plans.size > plansKept) plans.delete(oldest)
}

function usable({ tools, policy }: GateOptions): readonly string[] {
  return tools.map((tool) => tool.name).filter((name) => policy.toolsAllow?.includes(name) ?? true)
}

function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  const map = new Map(tools.map((tool) => [tool.name, tool]))
  if (map.size !== tools.length) throw new Error(`two tools share a name: ${tools.map((tool) => tool.name).join(', ')}`)
  return map
}
