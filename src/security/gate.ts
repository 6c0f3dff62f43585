/** Judges every tool call, whatever its entrance, and keeps the plan it judged so that exactly this plan is executed. */

import type { JsonObject } from '../kit/json.ts'
import { cut, visible } from '../kit/text.ts'
import type { Call, Judgement, Label, Risk } from '../runtime/event.ts'
import type { Judge, Tool } from '../runtime/port.ts'
import type { RuleOnChanges } from '../runtime/rules/rule-thread.ts'
import { alwaysKey } from './always.ts'
import { patternFlaw } from './arguments/schema-patterns.ts'
import { createValidator, type Validator } from './arguments/tool-arguments.ts'
import { type CommandFacts, type CommandMode, highest, type Permission, permit, type Rating, type RequestFacts } from './autonomy.ts'
import type { AroundWrites } from './changes/harmless/may-pass.ts'
import type { ReadRepository } from './command/transfer.ts'
import { type Plan, planHash, refusalHash, summarise } from './plan.ts'
import type { Policy } from './policy.ts'
import { lookForSecrets, precheck, type SecretLook } from './precheck.ts'
import type { Disk } from './targets/link.ts'
import { isUnder } from './targets/path.ts'
import { judgeTouch, type TouchFinding } from './touch.ts'

export type GateOptions = {
  readonly policy: Policy
  readonly tools: readonly Tool[]
  /** @returns the reason of the emergency stop, or undefined. The gate asks again for each call; throwing counts as stopped. */
  readonly estop: () => string | undefined
  /** @returns the path of an executable on the fixed PATH */
  readonly resolve: (name: string) => string | undefined
  /** Resolves symbolic links; without it the gate judges paths by their text alone. */
  readonly disk?: Disk
  readonly conversation: string
  /** How commands run here; absent: nothing confines them. */
  readonly commands?: CommandMode | (() => CommandMode | Promise<CommandMode>)
  /** Tells whether the operator approved this key (always.ts) with "always". */
  readonly always?: (key: string) => boolean
  /** Digests of the files that would be overwritten. They are part of the plan, so a change to such a file invalidates its approval. */
  readonly targetsOf?: (writes: readonly string[]) => Promise<JsonObject>
  /** Digests of the files that a command would run, and of what these include. They are part of the plan for the same reason. */
  readonly runsOf?: (runs: readonly string[]) => Promise<JsonObject>
  /** Reads the repository of a git fetch, pull or push. Absent: these run in the sandbox like other commands. */
  readonly repository?: ReadRepository
  /** Absent: git ignores nothing, and nothing was answered. */
  readonly aroundWrites?: () => Promise<AroundWrites>
  /** Asks the rules of the project about what the call of a file tool would write at this real path. */
  readonly ruledCall?: (call: Call, path: string) => Promise<RuleOnChanges | undefined>
  readonly envHash?: string
  /** Searches calls for registered secrets; absent when no secret is registered. */
  readonly secrets?: SecretLook
}

export type Gate = {
  /**
   * Never throws. Judging a call again right before it runs gives the same plan hash, unless the stop, the policy or a target changed;
   * this is the second look that SECURITY.md requires.
   */
  readonly judge: Judge
  /**
   * Tells whether judging the call again would certainly give this plan: this gate issued the plan for this very input, the plan only reads
   * paths that the policy names, and no stop is set. Every other call (writes, commands, URLs) must be judged again.
   */
  holds(call: Call, hash: string): boolean
  /**
   * @returns the analysed plan behind a judgement's hash; undefined for refused calls and for hashes that this gate never issued or has
   * evicted
   */
  plan(hash: string): Plan | undefined
}

const plansKept = 1000

/**
 * @throws Error when two tools share a name: the gate could judge one and the executor run the other. Also for a schema with an unbounded
 * expression.
 */
export function createGate(options: GateOptions): Gate {
  const state: GateState = { ...options, byName: byName(options.tools), validate: createValidator(), plans: new Map<string, Plan>() }
  return {
    judge: async (call) => {
      try {
        return await judgeCall(call, state)
      } catch (error) {
        const reason = `the gate failed (${cut(visible(String(error)), 300)}); nothing was run`
        return refusal({ call: options.secrets?.json(call) ?? call, state, rule: 'gate.error', risk: 'high', reason })
      }
    },
    holds: (call, hash) => holds(call, state.plans.get(hash), state),
    plan: (hash) => state.plans.get(hash),
  }
}

type GateState = GateOptions & {
  readonly byName: ReadonlyMap<string, Tool>
  readonly validate: Validator
  readonly plans: Map<string, Plan>
}

/** A call that only reads paths named by the policy depends on the input, the policy and the stop, and only the stop can change. */
function holds(call: Call, plan: Plan | undefined, { estop }: GateState): boolean {
  if (plan === undefined || call.name !== plan.tool || call.input !== plan.input || call.malformed !== undefined) return false
  const isReading = plan.paths.every(({ access }) => access === 'read') && plan.urls.length === 0 && plan.commands.length === 0
  try {
    // Hashes the plan again, because other code may have modified the input object.
    return isReading && planHash(plan) === plan.hash && estop() === undefined
  } catch {
    return false
  }
}

type Accepted = Extract<TouchFinding, { ok: true }>

async function judgeCall(original: Call, state: GateState): Promise<Judgement> {
  const tool = state.byName.get(original.name)
  const { call, hidden } = lookForSecrets(original, tool, state.secrets)
  const turned = precheck({ call, tool, estop: state.estop, usable: usable(state) })
  if (turned) return refusal({ call, state, risk: tool?.risk ?? 'high', ...turned })
  if (!tool) throw new Error('an unknown tool was let through')
  if (hidden) return refusal({ call, state, risk: 'high', ...hidden })
  const valid = await state.validate(tool.parameters, call.input)
  if (!valid.ok) return refusal({ call, state, risk: tool.risk, rule: 'schema.invalid', reason: `${visible(call.name)}: ${valid.message}` })
  const touches = tool.touches(call.input)
  const commands = touches.some(({ kind }) => kind === 'command') ? await modeOf(state) : undefined
  const findings = await Promise.all(touches.map((touch) => judgeTouch(touch, { ...state, commands })))
  const forbidden = findings.find((finding) => !finding.ok)
  if (forbidden && !forbidden.ok) return refusal({ call, state, risk: 'high', rule: forbidden.rule, reason: forbidden.reason })
  return decide({ call, tool, state, findings: findings.filter((finding) => finding.ok) })
}

async function modeOf({ commands }: GateState): Promise<CommandMode | undefined> {
  return typeof commands === 'function' ? commands() : commands
}

/** They change only the paths that they name. */
const fileTools: ReadonlySet<string> = new Set(['file_write', 'file_edit', 'file_delete'])

type CallToDecide = { readonly call: Call; readonly tool: Tool; readonly state: GateState; readonly findings: readonly Accepted[] }

async function decide({ call, tool, state, findings }: CallToDecide): Promise<Judgement> {
  const plan = await planOf({ call, state, findings })
  const rating = rate(tool, findings)
  const reads = findings.every((finding) => finding.reads)
  const permitted = permit(
    {
      rating,
      reads,
      files: fileTools.has(call.name),
      command: factsOf(findings),
      request: requestsOf(findings),
      always: hasStandingApproval(plan, state),
    },
    state.policy,
  )
  const permission = await unlessRuled(await unlessNotHarmless(permitted, plan, state), { call, plan, state })
  if (permission.verdict !== 'deny') keep(plan, state.plans)
  const hosts = findings.flatMap(({ facts }) => (facts === undefined || facts.transfer ? [] : facts.hosts))
  const requests = findings.flatMap(({ request }) => request ?? [])
  const words = findings.flatMap(({ outside = [] }) => outside).filter((path) => state.disk?.isFile?.(path) ?? true)
  const paths = [...plan.paths, ...words.map((path) => ({ path, access: 'read' }))]
  const labels = labelsOf({ tool: call.name, paths, requests, hosts }, state.policy)
  return judgement({ call, plan, permission, writes: [...new Set(findings.flatMap((finding) => finding.writes))], labels })
}

/**
 * Asks although the level allows the call: approval in advance covers only harmless writes, and `full` covers no hidden settings, as with
 * the changes of commands. With `ask = "before"` approval in advance covers every medium risk.
 */
async function unlessNotHarmless(permission: Permission, { paths }: Plan, { policy, disk, aroundWrites }: GateState): Promise<Permission> {
  const isFull = permission.rule === 'autonomy.full' && policy.toolSettings === 'ask'
  const isAuto = permission.rule === 'autonomy.approve_all_medium' && policy.ask !== 'before'
  const all = isFull || isAuto ? paths.flatMap(({ access, path, real }) => (access === 'write' ? [real ?? path] : [])) : []
  if (all.length === 0) return permission
  const { reasonToAsk, hiddenAmong } = await import('./changes/harmless/may-pass.ts')
  const written = isFull ? hiddenAmong(all, policy) : all
  const reason = reasonToAsk(written, { policy, disk, around: await aroundWrites?.() })
  return reason === undefined ? permission : { ...permission, verdict: 'ask', rule: 'changes.not_harmless', reason }
}

type Permitted = Omit<Permission, 'rule'> & { readonly rule: string }

/** The rules of the project hold at every level, and loosen nothing. */
async function unlessRuled(permission: Permission, of: { call: Call; plan: Plan; state: GateState }): Promise<Permitted> {
  const path = of.plan.paths.find(({ access }) => access === 'write')
  if (permission.verdict === 'deny' || path === undefined) return permission
  const ruled = await of.state.ruledCall?.(of.call, path.real ?? path.path)
  return ruled === undefined ? permission : { ...permission, ...ruled }
}

async function planOf({ call, state, findings }: Omit<CallToDecide, 'tool'>): Promise<Plan> {
  const body = {
    tool: call.name,
    input: call.input,
    paths: findings.flatMap(({ path }) => path ?? []),
    urls: findings.flatMap(({ url }) => url ?? []),
    commands: findings.flatMap(({ command }) => command ?? []),
    targets: { ...(await state.targetsOf?.(findings.flatMap(({ writes }) => writes))), ...(await runsIn(findings, state)) },
    envHash: state.envHash ?? '',
    policyVersion: state.policy.version,
    conversation: state.conversation,
  }
  return { ...body, hash: planHash(body), always: findings.length === 1 ? findings[0]?.always : undefined }
}

async function runsIn(findings: readonly Accepted[], { runsOf }: GateState): Promise<JsonObject> {
  const runs = findings.flatMap(({ runs: files }) => files ?? [])
  return runs.length === 0 ? {} : ((await runsOf?.(runs)) ?? {})
}

function judgement(of: {
  call: Call
  plan: Plan
  permission: Permitted
  writes: readonly string[]
  labels: readonly Label[] | undefined
}): Judgement {
  const { verdict, risk, rule, reason } = of.permission
  return { verdict, risk, rule, reason, plan: of.plan.hash, summary: summarise(of.call, of.plan), writes: of.writes, labels: of.labels }
}

function refusal({
  call,
  state,
  risk,
  rule,
  reason,
}: {
  call: Call
  state: GateState
  risk: Risk
  rule: string
  reason: string
}): Judgement {
  return { verdict: 'deny', risk, rule, reason, plan: refusalHash(call, state.conversation), summary: summarise(call), writes: [] }
}

/** The reasons of the touches come first; the tool's declared risk is named only when it is higher. */
function rate(tool: Tool, findings: readonly Accepted[]): Rating {
  const [first, ...rest] = findings.map((finding) => finding.rating)
  if (!first) return { risk: tool.risk, reason: 'touches neither files, commands nor the network' }
  // A tool for commands declares the risk of the usual command; one that was proved to only read has its own.
  const declared = findings.every(({ command }) => command?.readOnly) && tool.risk === 'medium' ? [] : [tool.risk]
  return highest(first, [...rest, ...declared.map((risk) => ({ risk, reason: `${tool.name} is declared ${tool.risk} risk` }))])
}

/** Combines the facts about all commands of the call; undefined when the call has none. */
function factsOf(findings: readonly Accepted[]): CommandFacts | undefined {
  const all = findings.flatMap(({ facts }) => facts ?? [])
  if (all.length === 0) return undefined
  return {
    confined: all.every(({ confined }) => confined),
    transaction: all.every(({ transaction }) => transaction),
    hosts: all.flatMap(({ hosts }) => hosts),
    beyond: all.flatMap(({ beyond }) => beyond),
    direct: all.some(({ direct }) => direct),
    transfer: all.find(({ transfer }) => transfer)?.transfer,
  }
}

function requestsOf(findings: readonly Accepted[]): RequestFacts | undefined {
  const all = findings.flatMap(({ request }) => request ?? [])
  return all.length === 0 ? undefined : { beyond: all.flatMap(({ beyond }) => beyond), reads: all.every(({ reads }) => reads) }
}

function hasStandingApproval(plan: Plan, state: GateState): boolean {
  return plan.always !== undefined && state.always?.(alwaysKey(plan.always)) === true
}

/** Evicts the oldest plans first. This is safe because the executor refuses a call whose plan is missing. */
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
  for (const { name, parameters } of tools) {
    const flaw = patternFlaw(parameters)
    if (flaw !== undefined) throw new Error(`the schema of the tool "${name}" cannot be checked: ${flaw}`)
  }
  return map
}

/**
 * The facts about a call that decide its labels. `carries`: the request could send data along; `foreign`: its answer is a text of others.
 * `hosts`: the hosts that its commands reach.
 */
export type CallFacts = {
  readonly tool: string
  readonly paths: readonly { readonly path: string; readonly real?: string; readonly access: string }[]
  readonly requests: readonly { readonly carries: boolean; readonly foreign: boolean }[]
  readonly hosts: readonly string[]
}

type LabelPolicy = Pick<Policy, 'workspace' | 'home' | 'channel'>

/** Files that usually hold keys, wherever they are; security.forbidden_reads refuses most of them unless the operator changed it. */
const secretName =
  /^(\.env(\..*)?|.*\.(pem|key|p12|pfx|kdbx)|id_[a-z0-9_]+|\.?netrc|\.pgpass|\.npmrc|\.pypirc|.*credentials.*|.*secrets?(\..*)?)$/i
const exampleName = /\.(example|sample|template|dist)$/i

/** Where package managers and people put what others wrote. */
const foreignFolder = /\/(node_modules|site-packages|vendor|third_party)\//

/**
 * Labels what a call reads and sends, by plain rules, for the thread that asks before private data can leave together with foreign
 * instructions.
 * @returns undefined when the call does nothing of that kind, so that a journal of ordinary calls does not grow
 */
export function labelsOf({ tool, paths, requests, hosts }: CallFacts, policy: LabelPolicy): readonly Label[] | undefined {
  const reads = paths.flatMap(({ path, real, access }) => (access === 'read' ? [real ?? path] : []))
  const isAnswered = hosts.length > 0 || requests.some(({ foreign }) => foreign)
  const labels: Label[] = []
  if (reads.some((path) => isPrivate(path, policy)) || searchesAll(tool, policy)) labels.push('reads_private')
  if (isAnswered || reads.some((path) => isForeign(path, policy))) labels.push('reads_untrusted')
  if (hosts.length > 0 || requests.some(({ carries }) => carries)) labels.push('sends')
  return labels.length === 0 ? undefined : labels
}

function isPrivate(path: string, { workspace }: LabelPolicy): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return !isUnder(path, workspace) || (secretName.test(name) && !exampleName.test(name))
}

/** Installed packages, and what lies neither in the workspace nor in the home folder. */
function isForeign(path: string, { workspace, home }: LabelPolicy): boolean {
  return isUnder(path, workspace) ? foreignFolder.test(path.slice(workspace.length)) : !isUnder(path, home)
}

/** Tells whether memory_search finds more than what the same person wrote in a chat with a separate memory. */
function searchesAll(tool: string, { channel }: LabelPolicy): boolean {
  return tool === 'memory_search' && channel?.memory !== 'own'
}
