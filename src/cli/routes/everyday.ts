/** The commands of every day: agent, init, onboard, doctor, trust, estop. */

import { buildCommand } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { jsonFlag, workspaceFlag } from '../args/flags.ts'
import { turnFlags } from '../args/turn-flags.ts'
import { limitsHelp } from './limits-help.ts'
import type { AgentFlags, DoctorFlags, EstopFlags, InitFlags, TrustFlags } from './types.ts'

const brief = 'Talk to the agent: a conversation, or one turn with -m'

export const agent = buildCommand<AgentFlags, [], CliContext>({
  loader: async () => (await import('../commands/talk/agent.ts')).agent,
  parameters: {
    flags: {
      message: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Run one turn with this message and exit; text on stdin is appended',
        placeholder: 'text',
      },
      ...turnFlags,
    },
    aliases: { m: 'message', C: 'workspace', c: 'continue' },
  },
  docs: {
    brief,
    get fullDescription() {
      return `${brief}\n\n${limitsHelp()}`
    },
    customUsage: [
      { input: '', brief: 'a conversation in the terminal' },
      { input: '-m "What files are in this project?"', brief: 'one turn' },
      { input: '-c -m "And the largest?"', brief: 'go on with the latest conversation' },
    ],
  },
})

export const init = buildCommand<InitFlags, [], CliContext>({
  loader: async () => (await import('../commands/home/init.ts')).init,
  parameters: { flags: { ...workspaceFlag, ...jsonFlag }, aliases: { C: 'workspace' } },
  docs: {
    brief: 'Create ~/.braidclaw: config, memory, receipts, workspace. Keeps what is there, and adds providers whose keys are set',
    customUsage: [
      { input: '', brief: 'in your home' },
      { input: '--workspace ~/project', brief: 'with this folder as the workspace' },
    ],
  },
})

export const onboard = buildCommand<NonNullable<unknown>, [], CliContext>({
  loader: async () => (await import('../commands/home/onboard.ts')).onboard,
  parameters: {},
  docs: {
    brief: 'Connect a model: asks which one, where it is and what key it wants, tries it, and writes the config',
    customUsage: [{ input: '', brief: 'in a terminal' }],
  },
})

export const doctor = buildCommand<DoctorFlags, [], CliContext>({
  loader: async () => (await import('../commands/home/doctor.ts')).doctor,
  parameters: {
    flags: {
      probeSandbox: {
        kind: 'boolean',
        optional: true,
        withNegated: false,
        brief: 'Try to get out of the sandbox in forty ways (exit 1 if one succeeds)',
      },
      ...workspaceFlag,
      ...jsonFlag,
    },
    aliases: { C: 'workspace' },
  },
  docs: {
    brief: 'Check home, config, memory, receipts, tools and terminal; say what to do about each finding',
    customUsage: [
      { input: '', brief: 'read, then do what it says' },
      { input: '--probe-sandbox', brief: 'prove that commands are confined' },
      { input: '--json', brief: 'for scripts' },
    ],
  },
})

export const trust = buildCommand<TrustFlags, [string?], CliContext>({
  loader: async () => (await import('../commands/home/trust.ts')).trust,
  parameters: {
    flags: {
      remove: { kind: 'boolean', optional: true, withNegated: false, brief: 'No longer trust the folder' },
      list: { kind: 'boolean', optional: true, withNegated: false, brief: 'List the trusted folders' },
      ...jsonFlag,
    },
    positional: { kind: 'tuple', parameters: [{ parse: String, optional: true, brief: 'Folder (default: this one)', placeholder: 'dir' }] },
  },
  docs: {
    brief: "Let a folder's own AGENTS.md, settings and rules count",
    customUsage: [
      { input: '', brief: 'trust this folder' },
      { input: '--remove ~/project', brief: 'no longer' },
      { input: '--list', brief: 'whom you trust' },
    ],
  },
})

export const estop = buildCommand<EstopFlags, [], CliContext>({
  loader: async () => (await import('../commands/service/estop.ts')).estop,
  parameters: {
    flags: {
      clear: { kind: 'boolean', optional: true, withNegated: false, brief: 'Lift the stop' },
      reason: { kind: 'parsed', parse: String, optional: true, brief: 'Why; shown to whoever is stopped', placeholder: 'text' },
      ...jsonFlag,
    },
  },
  docs: {
    brief: 'Emergency stop: no tool runs, in no process of this home, until it is cleared',
    customUsage: [
      { input: '--reason "wrong branch"', brief: 'stop every tool of every process now' },
      { input: '--clear', brief: 'let tools run again' },
    ],
  },
})
