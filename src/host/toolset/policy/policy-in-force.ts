/** Describes every list and level in force, and how commands run on this machine, for people who ask what is allowed and why. */

import type { Risk } from '../../../runtime/event.ts'
import { type CommandFacts, type CommandMode, permit } from '../../../security/autonomy.ts'
import { runUnaskedByReason } from '../../../security/changes/harmless/run-unasked.ts'
import { type LevelName, levelOf } from '../../../security/explain.ts'
import { forbiddenWithoutView, type Policy } from '../../../security/policy.ts'
import { protectedNamesByReason } from '../../../security/targets/protected-names.ts'
import type { Setup } from '../../api.ts'
import { policyOf } from '../../setup/effective-policy.ts'
import { commandModeOf } from './explained-gate.ts'
import { ownTools } from './own-tools.ts'

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
    ...(policy.toolsAllow ? { tools: policy.toolsAllow } : {}),
    standingRules: standing,
  }
}

function listed(byReason: { readonly [reason: string]: string }) {
  return Object.entries(byReason).map(([reason, names]) => ({ reason, names: names.split(' ') }))
}

type Kind = { readonly kind: string; readonly risk: Risk; readonly facts?: (mode: CommandMode) => CommandFacts }

const plain = ({ confined, transaction }: CommandMode): CommandFacts => ({ confined, transaction, hosts: [], beyond: [], direct: false })

/** Each kind of call, as the gate sees it. */
const kinds: readonly Kind[] = [
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

type Asked = { readonly risk: Risk; readonly facts: CommandFacts | undefined }

function answers({ risk, facts: command }: Asked, policy: Policy) {
  const verdict = (level: LevelName) => {
    const autonomy = level === 'auto' ? 'supervised' : level
    const rated = { rating: { risk, reason: '' }, reads: risk === 'low', always: false, command }
    return permit(rated, { ...policy, autonomy, approveAllMedium: level === 'auto' }).verdict
  }
  return { readonly: verdict('readonly'), supervised: verdict('supervised'), auto: verdict('auto'), full: verdict('full') }
}
