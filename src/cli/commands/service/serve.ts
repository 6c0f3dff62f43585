/** Implements `serve`: the HTTP gateway, and the other enabled channels except the FIFOs. */

import { resolve } from 'node:path'
import { http } from '../../../channels/http/kind.ts'
import { serve as serveChannels } from '../../../channels/serve-channels.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { agentProfileOf } from '../../../host/setup/agent-profile.ts'
import { providerFor } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { clearLeftovers } from '../../../sandbox/private-folder.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import { serverFileFlags, serverFlags } from '../../args/turn-flags.ts'
import { withServerFiles } from '../../server-files.ts'

const flags = {
  port: { type: 'whole', min: 0, max: 65_535, setting: 'channels.http.port', about: 'The port; 0 is any free one' },
  host: {
    type: 'text',
    setting: 'channels.http.host',
    about: 'The address to listen on; another one than this machine itself needs a token',
  },
  tokenFile: { type: 'text', about: 'A file (mode 0600) that holds one more admin token; read again when it changes' },
  ...serverFileFlags,
  ...serverFlags,
} as const satisfies Flags
type ServeFlags = Given<typeof flags>

/** @throws CliExit when it cannot start; it ends with exit code 0 on a stop signal */
export const serve = command({
  flags,
  examples: [
    ['', 'on http://127.0.0.1:4127'],
    ['--port 0', 'on any free port, which the ready line names'],
    ['--host 0.0.0.0 --token-file ~/token', 'for other machines too'],
  ],
  run: (context, given) => withServerFiles(context, given, (logged) => run(logged, given)),
})

async function run(context: CliContext, given: ServeFlags): Promise<void> {
  const setup = withHttp(loadServer(context, given), given)
  clearLeftovers(setup.paths.home, setup.log)
  using interrupt = onInterrupt(() => {})
  await serveChannels({
    setup,
    agentProfile: agentProfileOf(setup),
    dir: setup.paths.home,
    provider: await providerFor(setup, setup.config.defaultProvider),
    sandbox: given.sandbox,
    without: ['fifo'],
    vital: [http.name],
    ready: (places) =>
      setup.context.say(`ready: ${places.join(', ')} (brain: ${setup.config.defaultProvider}); stop with Ctrl-C or SIGTERM\n`),
    signal: interrupt.signal,
  })
}

/** Logs at level info unless the user chose a level, because a long-lived program should report what it does. */
export function loadServer(context: CliContext, flags: Given<typeof serverFlags>): CliSetup {
  const setup = loadSetup(context, flags, { stays: true })
  if (context.env.BRAIDCLAW_LOG || setup.origins['log.level']?.source !== 'default') return setup
  return loadSetup({ ...context, env: { ...context.env, BRAIDCLAW_LOG: 'info' } }, flags, { stays: true })
}

function withHttp(setup: CliSetup, { port, host: address, tokenFile }: ServeFlags): CliSetup {
  const { channels } = setup.config
  const given = {
    enabled: true,
    port,
    host: address,
    ...(tokenFile === undefined ? {} : { tokenFile: resolve(setup.context.cwd, tokenFile) }),
  }
  return { ...setup, config: { ...setup.config, channels: { ...channels, http: { ...channels.http, ...given } } } }
}
