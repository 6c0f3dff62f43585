/** Implements `security show`: every list and level in force, and how commands run on this machine. */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { policyOf } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { commandModeOf } from '../../../host/toolset/explained-gate.ts'
import type { Risk } from '../../../runtime/event.ts'
import { type CommandFacts, type CommandMode, permit } from '../../../security/autonomy.ts'
import { runUnaskedByReason } from '../../../security/changes/harmless/run-unasked.ts'
import { type LevelName, levelNames, levelOf } from '../../../security/explain.ts'
import type { Policy } from '../../../security/policy.ts'
import { protectedNamesByReason } from '../../../security/targets/protected-names.ts'
import type { Command, Flags } from '../../args/command.ts'
import { approveFlag, autonomyFlag, jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { ownTools } from '../home/doctor-sandbox.ts'

const flags = { ...jsonFlag, ...autonomyFlag, ...approveFlag, ...workspaceFlag } as const satisfies Flags

export const show = {
  flags,
  examples: [
    ['', 'what is allowed, asked about and refused here'],
    ['--autonomy full', 'for another level'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false, autonomy, approveAllMedium, workspace }) {
    const setup = loadSetup(context, { autonomy, approveAllMedium, workspace })
    const shown = setup.redactor.value(await inForce(setup))
    context.process.stdout.write(json ? `${JSON.stringify(shown)}\n` : page(shown))
  },
} as const satisfies Command<typeof flags>

type Shown = Awaited<ReturnType<typeof inForce>>

async function inForce(setup: CliSetup) {
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const commands = await commandModeOf(setup)
  const standing = await withMemory(setup, async ({ approvals }) => approvals.rules().length)
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
    },
    levels: kinds.map(({ kind, risk, facts }) => ({ kind, ...answers({ risk, facts: facts?.(commands) }, policy) })),
    allowCommands: policy.allowCommands,
    forbiddenCommands: policy.forbiddenCommands,
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

function page(shown: Shown): string {
  const { commands, settings, levels, network } = shown
  const names = ({ reason, names: all }: { readonly reason: string; readonly names: readonly string[] }) => `  ${reason}: ${all.join(' ')}`
  const column = Math.max(...levels.map(({ kind }) => kind.length)) + 2
  return [
    `level:      ${shown.level}${shown.level === 'auto' ? ' (supervised with --auto)' : ''}`,
    `workspace:  ${shown.workspace}${shown.workspaceOnly ? ', and nothing outside it' : '; workspace_only is off'}`,
    `commands:   ${modeText(commands)}`,
    `settings:   ask = ${settings.ask}, unlisted_commands = ${settings.unlistedCommands}, readonly_commands = ${settings.readonlyCommands}, egress = ${settings.egress}`,
    `network:    ${network.allowedDomains.join(', ') || 'no host is listed'}; ports ${network.ports.join(', ')}`,
    ...(shown.tools ? [`tools:      ${shown.tools.join(', ')}`] : []),
    `standing:   ${shown.standingRules} always allowed (braidclaw approvals rules list)`,
    '',
    `${''.padEnd(column)}${levelNames.map((name) => name.padEnd(12)).join('')}`.trimEnd(),
    ...levels.map((row) => `${row.kind.padEnd(column)}${levelNames.map((name) => row[name].padEnd(12)).join('')}`.trimEnd()),
    '',
    'never run, however they are hidden (forbidden_commands):',
    `  ${shown.forbiddenCommands.join(' ')}`,
    'never touched (forbidden_paths, and our own files):',
    `  ${[...shown.forbiddenPaths, ...shown.protectedPaths].join(' ')}`,
    'never read (forbidden_reads):',
    `  ${shown.forbiddenReads.join(' ')}`,
    'read and run by commands in your home folder, besides the system (from your PATH):',
    `  ${shown.ownTools.join(' ') || 'nothing'}`,
    'never written, wherever they lie:',
    ...shown.protectedNames.map(names),
    'never changed without a question but in full, because tools run or obey them unasked:',
    ...shown.asksAlways.map(names),
    'allow list of commands (built in, and allow_commands):',
    `  ${shown.allowCommands.join(' ')}`,
    '',
  ].join('\n')
}

function modeText({ confined, transaction, network, why }: CommandMode): string {
  const because = why === undefined ? '' : ` (${why})`
  if (!confined) return `nothing confines them${because}`
  const views = transaction ? 'each on a private view of the workspace' : `directly on the workspace${because}`
  return `in the sandbox, ${views}; network ${network === false ? 'never' : 'only to hosts of the command'}`
}
