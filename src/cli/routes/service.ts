/** What stays running: the daemon, and bridges that serve another agent. */

import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../../channels/terminal/context.ts'
import { sandboxFlag, workspaceFlag } from '../args/flags.ts'
import { turnFlags } from '../args/turn-flags.ts'
import type { BridgeFlags, DaemonFlags } from './types.ts'

const folderFlags = {
  fifoDir: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'The folder of the six FIFOs (default: PLANCKCLAW_FIFOS, or /tmp/planckclaw)',
    placeholder: 'dir',
  },
  envFile: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'NAME=value lines, read and never run (default: config.env in the home, if it is there)',
    placeholder: 'file',
  },
} as const

const { agent, model, autonomy, maxTurns, approveAllMedium } = turnFlags

export const daemon = buildCommand<DaemonFlags, [], CliContext>({
  loader: async () => (await import('../commands/service/daemon.ts')).daemon,
  parameters: {
    flags: {
      ...folderFlags,
      bridge: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Start and keep running a bridge: interact=COMMAND, brain=COMMAND or claw=COMMAND; may be repeated',
        placeholder: 'role=command',
      },
      brain: {
        kind: 'enum',
        values: ['inside', 'fifo'],
        optional: true,
        brief: 'Who thinks: the configured provider, or a brain on the FIFOs',
      },
      claw: {
        kind: 'enum',
        values: ['inside', 'fifo', 'both'],
        optional: true,
        brief: 'Who has the tools: our ten, a claw on the FIFOs, or both',
      },
      ...workspaceFlag,
      ...sandboxFlag,
      agent,
      model,
      autonomy,
      maxTurns,
      approveAllMedium,
    },
    aliases: { C: 'workspace' },
  },
  docs: {
    brief: 'An assistant that stays: six FIFOs, Discord, bridges in any language (docs/daemon.md)',
    customUsage: [
      { input: '', brief: 'with the configured model and our ten tools' },
      { input: '--bridge brain=./bridges/brain.sh --bridge claw=./bridges/claw.sh', brief: 'brain and claw are scripts' },
      { input: '--fifo-dir ~/fifos --agent planck', brief: 'elsewhere, as another agent' },
    ],
  },
})

function bridgeTo(role: 'interact' | 'cli' | 'discord' | 'brain' | 'claw', brief: string) {
  return buildCommand<BridgeFlags, [], CliContext>({
    loader: async () => (await import('../commands/service/bridge.ts')).bridges[role],
    parameters: {
      flags: {
        ...folderFlags,
        channel: {
          kind: 'parsed',
          parse: String,
          optional: true,
          brief: 'cli: whom the answers go to (default: cli)',
          placeholder: 'name',
        },
        ...workspaceFlag,
        ...sandboxFlag,
        model,
        autonomy,
        approveAllMedium,
      },
      aliases: { C: 'workspace' },
    },
    docs: {
      brief,
      customUsage: [
        { input: '', brief: `serve ${'`'}/tmp/planckclaw${'`'}` },
        { input: '--fifo-dir ~/fifos', brief: 'another folder' },
      ],
    },
  })
}

export const bridge = buildRouteMap<string, CliContext>({
  routes: {
    interact: bridgeTo('interact', 'Lines of stdin as messages, answers as lines on stdout, as they stand on the FIFOs'),
    cli: bridgeTo('cli', 'A person at this terminal talks to the agent behind the FIFOs'),
    discord: bridgeTo('discord', 'Discord talks to the agent behind the FIFOs'),
    brain: bridgeTo('brain', 'Our configured provider thinks for the agent behind the FIFOs'),
    claw: bridgeTo('claw', 'Our tools, through the gate and with receipts, for the agent behind the FIFOs'),
  },
  docs: { brief: 'Serve another agent that speaks the six FIFOs' },
})
