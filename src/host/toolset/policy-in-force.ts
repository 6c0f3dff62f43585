/**
 * Describes every list and level in force, and how commands run on this machine, for people who ask what is allowed and why; prepares the
 * gate for commands that only ask it.
 */

import { homedir } from 'node:os'
import { atEnd } from '../../kit/errors.ts'
import type { Proposal, Risk } from '../../runtime/event.ts'
import { explainRules } from '../../runtime/rules/explain.ts'
import { findToolchains, type Toolchains } from '../../sandbox/filesystem/toolchains.ts'
import { type CommandFacts, type CommandMode, permit } from '../../security/autonomy.ts'
import { runUnaskedByReason } from '../../security/changes/harmless/run-unasked.ts'
import { type ExplainOptions, type LevelName, levelOf } from '../../security/explain.ts'
import { forbiddenWithoutView, type Policy } from '../../security/policy.ts'
import { protectedNamesByReason } from '../../security/targets/protected.ts'
import { readStop } from '../../service/stop-file.ts'
import { disk } from '../../workspace/disk.ts'
import type { Setup } from '../api.ts'
import { policyOf, resolveExecutable } from '../setup/effective-policy.ts'
import { rulesInForce, rulesOfFile } from '../setup/operator-rules.ts'
import { createRepositoryReader } from '../transactions/command-spawn.ts'
import type { ToolSelection } from './contract.ts'
import { createConfinement } from './sandbox/command-sandbox.ts'
import { createToolRuntime } from './tool-executor.ts'

export type PolicyInForce = Awaited<ReturnType<typeof policyInForce>>

/** @param standing how many permanent approvals there are */
export async function policyInForce(setup: Setup, standing: number) {
  const policy = policyOf(setup.config, setup.paths, setup.context.env, setup.access)
  const commands = await commandModeOf(setup)
  return {
    level: levelOf(policy),
    workspace: policy.workspace,
    workspaceOnly: policy.workspaceOnly,
    commands,
    settings: {
      ask: policy.ask,
      unlistedCommands: policy.unlistedCommands,
      readonlyCommands: policy.readonlyCommands,
      egress: policy.egress,
      direct: policy.direct,
      toolSettings: policy.toolSettings,
    },
    levels: kinds.map(({ kind, risk, facts }) => ({ kind, ...answers({ risk, facts: facts?.(commands) }, policy) })),
    allowCommands: policy.allowCommands,
    forbiddenCommands: commands.transaction ? policy.forbiddenCommands : forbiddenWithoutView(policy.forbiddenCommands),
    forbiddenPaths: policy.forbiddenPaths,
    forbiddenReads: policy.forbiddenReads ?? [],
    ownTools: ownTools(setup).mounts,
    protectedPaths: policy.protectedPaths,
    protectedNames: listed(protectedNamesByReason),
    asksAlways: listed(runUnaskedByReason),
    network: { allowedDomains: policy.allowedDomains, ports: [80, 443, ...policy.allowedPorts] },
    tools: policy.toolsAllow,
    standingRules: standing,
  }
}

function listed(byReason: { readonly [reason: string]: string }) {
  return Object.entries(byReason).map(([reason, names]) => ({ reason, names: names.split(' ') }))
}

type CallKind = { readonly kind: string; readonly risk: Risk; readonly facts?: (mode: CommandMode) => CommandFacts }

const plain = ({ confined, transaction }: CommandMode): CommandFacts => ({ confined, transaction, hosts: [], beyond: [], direct: false })

/** The kinds of calls that the gate distinguishes. */
const kinds: readonly CallKind[] = [
  { kind: 'read, list, search; a command that only reads', risk: 'low' },
  { kind: 'a file that a tool writes', risk: 'medium' },
  { kind: 'a command of the allow list', risk: 'medium', facts: plain },
  { kind: 'any other command', risk: 'high', facts: plain },
  { kind: 'a command with network, host listed', risk: 'high', facts: (mode) => ({ ...plain(mode), hosts: ['host'] }) },
  {
    kind: 'a command with network, host not listed',
    risk: 'high',
    facts: (mode) => ({ ...plain(mode), hosts: ['host'], beyond: ['host'] }),
  },
  { kind: 'a command on the workspace itself', risk: 'medium', facts: (mode) => ({ ...plain(mode), direct: true }) },
]

type RatedCall = { readonly risk: Risk; readonly facts: CommandFacts | undefined }

function answers({ risk, facts: command }: RatedCall, policy: Policy) {
  const verdict = (level: LevelName) => {
    const autonomy = level === 'auto' ? 'supervised' : level
    const rated = { rating: { risk, reason: '' }, reads: risk === 'low', always: false, command }
    return permit(rated, { ...policy, autonomy, approveAllMedium: level === 'auto' }).verdict
  }
  return { readonly: verdict('readonly'), supervised: verdict('supervised'), auto: verdict('auto'), full: verdict('full') }
}

/** Tries now how commands run here. */
async function commandModeOf(setup: Setup): Promise<CommandMode> {
  const confinement = createConfinement('auto', { setup, policy: policyOf(setup.config, setup.paths, setup.context.env) })
  using _end = atEnd(() => confinement.close())
  return await confinement.mode()
}

type GateRequest = { readonly tools: ToolSelection; readonly threads?: string | undefined; readonly commands?: CommandMode }

export async function explainedGate(setup: Setup, { tools: wished, threads, commands }: GateRequest): Promise<ExplainOptions> {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env, setup.access)
  const toolRuntime = await createToolRuntime({ setup, policy, conversationId: 'explain', tools: wished })
  await toolRuntime.close()
  const rules = threads === undefined ? rulesInForce(setup).written : rulesOfFile(setup, threads)
  return {
    policy: toolRuntime.policy,
    tools: toolRuntime.all,
    estop: () => readStop(paths.estop),
    resolve: resolveExecutable,
    disk,
    commands: commands ?? (await commandModeOf(setup)),
    repository: createRepositoryReader(setup, policy),
    conversation: 'explain',
    secrets: setup.redactor,
    rulesFor: (proposal: Proposal) => explainRules(rules, proposal),
  }
}

/** Finds the user's own tools that commands in the sandbox can read and run. */
export function ownTools({ context, config, paths }: Setup): Toolchains {
  const { PATH: path = '', HOME } = context.env
  return findToolchains({ path, home: HOME || homedir(), except: [config.workspaceDir, paths.home] })
}
