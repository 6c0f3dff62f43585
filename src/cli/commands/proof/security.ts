/** Implements `security show`: every list and level in force, and how commands run on this machine. */

import { withMemory } from '../../../host/open/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { type PolicyInForce, policyInForce } from '../../../host/toolset/policy/policy-in-force.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { levelNames } from '../../../security/explain.ts'
import type { Command, Flags } from '../../args/command.ts'
import { approveFlag, autonomyFlag, jsonFlag, workspaceFlag } from '../../args/flags.ts'

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
    const standing = await withMemory(setup, async ({ approvals }) => approvals.rules().length)
    const shown = setup.redactor.value(await policyInForce(setup, standing))
    context.process.stdout.write(json ? `${JSON.stringify(shown)}\n` : page(shown))
  },
} as const satisfies Command<typeof flags>

function page(shown: PolicyInForce): string {
  const { commands, settings, levels, network } = shown
  const names = ({ reason, names: all }: { readonly reason: string; readonly names: readonly string[] }) => `  ${reason}: ${all.join(' ')}`
  const column = Math.max(...levels.map(({ kind }) => kind.length)) + 2
  return [
    `level:      ${shown.level}${shown.level === 'auto' ? ' (supervised with --auto)' : ''}`,
    `workspace:  ${shown.workspace}${shown.workspaceOnly ? ', and nothing outside it' : '; workspace_only is off'}`,
    `commands:   ${modeText(commands)}`,
    `settings:   ask = ${settings.ask}, unlisted_commands = ${settings.unlistedCommands}, readonly_commands = ${settings.readonlyCommands}, egress = ${settings.egress}, direct = ${settings.direct}`,
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
