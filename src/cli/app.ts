/** Every command, its flags and its help, in one table; the code behind each is loaded when it runs. */

import { buildRouteMap } from '@stricli/core'
import { applicationOf } from './application.ts'
import { exitCodeHelp } from './exit.ts'
import { agent } from './routes/agent.ts'
import { doctor, estop, init, onboard, trust } from './routes/everyday.ts'
import { completion, config, policy, provider, tool } from './routes/inspect.ts'
import { memory, receipt } from './routes/records.ts'
import type { CliContext } from './world.ts'

const root = buildRouteMap<string, CliContext>({
  routes: { agent, init, onboard, config, provider, tool, memory, receipt, policy, estop, doctor, trust, completion },
  docs: {
    brief: 'A local-first agent runtime: gated tools, receipts you can check, memory you can search',
    fullDescription: [
      'BraidClaw takes a message, thinks with a model, acts through gated tools inside a workspace, remembers, and can prove what it did.',
      '',
      'EXAMPLES',
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

/** `words` are those of the command line. */
export function createApp(words: readonly string[]) {
  return applicationOf(root, words)
}
