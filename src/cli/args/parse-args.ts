/** Every command, its flags and its help, in one table; the code behind each is loaded when it runs. */

import { buildApplication, buildRouteMap } from '@stricli/core'
import { version } from '../../../package.json'
import type { CliContext } from '../../channels/terminal/context.ts'
import { exitCodeHelp } from '../exit.ts'
import { agent, doctor, estop, init, onboard, trust } from '../routes/everyday.ts'
import { compose, filter, log, reset, session } from '../routes/filter.ts'
import { completion, config, policy, provider } from '../routes/inspect.ts'
import { rebuild, replay, run, verify } from '../routes/proof.ts'
import { approvals, memory, receipt } from '../routes/records.ts'
import { bridge, daemon } from '../routes/service.ts'
import { tool } from '../routes/tools.ts'
import { exitOf } from '../trouble.ts'
import { withFittedHelp } from './help.ts'
import type { Commands } from './resolve-command.ts'
import { wording } from './usage-errors.ts'

const root = buildRouteMap<string, CliContext>({
  routes: {
    agent,
    filter,
    init,
    onboard,
    config,
    provider,
    tool,
    session,
    reset,
    compose,
    log,
    memory,
    receipt,
    approvals,
    run,
    replay,
    rebuild,
    verify,
    policy,
    estop,
    daemon,
    bridge,
    doctor,
    trust,
    completion,
  },
  docs: {
    brief: 'A local-first agent runtime: gated tools, receipts you can check, memory you can search',
    fullDescription: [
      'BraidClaw takes a message, thinks with a model, acts through gated tools inside a workspace, remembers, and can prove what it did.',
      '',
      'EXAMPLES',
      '  braidclaw "What is 2+2?"               # a question; only the answer is printed',
      '  git diff | braidclaw -s "Review this"  # a filter; see braidclaw help filter',
      '  braidclaw agent -m "What files are in this project?"',
      '  git diff | braidclaw agent -m "Review this change"',
      '  braidclaw agent                        # a conversation; /help lists its commands',
      '  braidclaw policy explain -- rm -rf /   # what the gate says, and which rule',
      '  braidclaw receipt verify',
      '',
      'EXIT CODES',
      ...exitCodeHelp.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`),
    ].join('\n'),
  },
})

export function commands(): Commands {
  return { names: namesIn(root), under: subcommands, mayStandAlone: (command) => mapOf(command)?.getDefaultCommand() !== undefined }
}

function subcommands(command: string): readonly string[] {
  const map = mapOf(command)
  return map ? namesIn(map) : []
}

function mapOf(command: string): typeof root | undefined {
  const target = root.getAllEntries().find(({ name }) => name['convert-camel-to-kebab'] === command)?.target
  return target && 'getAllEntries' in target ? target : undefined
}

function namesIn(map: typeof root): readonly string[] {
  return map.getAllEntries().map(({ name }) => name['convert-camel-to-kebab'])
}

/** `words` are those of the command line, which decide how a wrong one is answered. */
export function createApp(words: readonly string[]) {
  const app = buildApplication<CliContext>(root, {
    name: 'braidclaw',
    versionInfo: { currentVersion: version },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true, distanceOptions: closeEnough },
    documentation: {
      caseStyle: 'convert-camel-to-kebab',
      useAliasInUsageLine: false,
      onlyRequiredInUsageLine: true,
      disableAnsiColor: true,
    },
    determineExitCode: (error) => exitOf(error).code,
    localization: { text: wording(words) },
  })
  return withFittedHelp(app)
}

/** A suggestion must be one slip away, or it misleads. */
const closeEnough = { threshold: 3, weights: { insertion: 1, deletion: 3, substitution: 2, transposition: 0 } } as const
