/** `bridge interact | cli | discord | brain | claw`: our side of one role, for another agent that speaks the six FIFOs. */

import { serveBrain } from '../../../channels/fifo/bridge/brain-bridge.ts'
import type { Bridging } from '../../../channels/fifo/bridge/bridge-ends.ts'
import { serveClaw } from '../../../channels/fifo/bridge/claw-bridge.ts'
import { serveCli, serveDiscord, serveInteract } from '../../../channels/fifo/bridge/people-bridge.ts'
import { fifoFolder, makeFifos } from '../../../channels/fifo/fifo-folder.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { withEnvFile } from '../../env-file.ts'
import type { BridgeFlags } from '../../routes/types.ts'

type Serve = (bridging: Bridging, flags: BridgeFlags) => Promise<void>

/** It ends with 0 when it is told to stop, or when whoever it serves people for has left. */
function bridge(serve: Serve) {
  return async function (this: CliContext, flags: BridgeFlags): Promise<void> {
    const context = withEnvFile(this, flags.envFile)
    const { workspace, model, autonomy, approveAllMedium } = flags
    const setup = setUp(context, { workspace, model, autonomy, approveAllMedium }, { stays: true })
    const dir = fifoFolder(context, flags.fifoDir)
    await makeFifos(dir)
    const stop = new AbortController()
    const interrupt = onInterrupt(() => stop.abort())
    try {
      await serve({ setup, dir, signal: stop.signal, stop: () => stop.abort() }, flags)
    } finally {
      interrupt.stop()
    }
  }
}

export const bridges = {
  interact: bridge(serveInteract),
  cli: bridge(serveCli),
  discord: bridge(serveDiscord),
  brain: bridge(serveBrain),
  claw: bridge(serveClaw),
}
