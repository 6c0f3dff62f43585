/** Implements `bridge interact | cli | discord | brain | claw`: our side of one role, for another agent that uses the six FIFOs. */

import { serveBrain } from '../../../channels/fifo/bridge/brain-bridge.ts'
import type { BridgeOptions } from '../../../channels/fifo/bridge/bridge-ends.ts'
import { serveClaw } from '../../../channels/fifo/bridge/claw-bridge.ts'
import { serveCli, serveDiscord, serveInteract } from '../../../channels/fifo/bridge/people-bridge.ts'
import { fifoFolder, makeFifos } from '../../../channels/fifo/fifo-folder.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { Command, Flags, Given } from '../../args/command.ts'
import { approveFlag, autonomyFlag, folderFlags, modelFlag, sandboxFlag, workspaceFlag } from '../../args/flags.ts'
import { withEnvFile } from '../../env-file.ts'

const flags = {
  ...folderFlags,
  channel: { type: 'text', about: 'cli: whom the answers go to (default: cli)' },
  ...workspaceFlag,
  ...sandboxFlag,
  ...modelFlag,
  ...autonomyFlag,
  ...approveFlag,
} as const satisfies Flags
type BridgeFlags = Given<typeof flags>

const shared = {
  flags,
  examples: [
    ['', 'serve /tmp/planckclaw'],
    ['--fifo-dir ~/fifos', 'another folder'],
  ],
} as const

type Row = Command<typeof flags>

export const interact = { ...shared, run: (context, given) => bridge(context, given, serveInteract) } as const satisfies Row
export const cli = { ...shared, run: (context, given) => bridge(context, given, serveCli) } as const satisfies Row
export const discord = { ...shared, run: (context, given) => bridge(context, given, serveDiscord) } as const satisfies Row
export const brain = { ...shared, run: (context, given) => bridge(context, given, serveBrain) } as const satisfies Row
export const claw = { ...shared, run: (context, given) => bridge(context, given, serveClaw) } as const satisfies Row

type Serve = (bridging: BridgeOptions, flags: BridgeFlags) => Promise<void>

/** Ends with exit code 0 on a stop signal, or when the input of the served people has ended. */
async function bridge(outer: CliContext, given: BridgeFlags, serve: Serve): Promise<void> {
  const context = withEnvFile(outer, given.envFile)
  const { workspace, model, autonomy, approveAllMedium } = given
  const setup = loadSetup(context, { workspace, model, autonomy, approveAllMedium }, { stays: true })
  const dir = fifoFolder(context, given.fifoDir)
  await makeFifos(dir)
  const stop = new AbortController()
  const interrupt = onInterrupt(() => stop.abort())
  try {
    await serve({ setup, dir, signal: stop.signal, stop: () => stop.abort() }, given)
  } finally {
    interrupt.stop()
  }
}
