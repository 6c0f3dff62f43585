/** `bridge interact | cli | discord | brain | claw`: our side of one role, for another agent that speaks the six FIFOs. */

import { serveBrain } from '../bridge/brain.ts'
import { serveClaw } from '../bridge/claw.ts'
import type { Bridging } from '../bridge/ends.ts'
import { serveCli, serveDiscord, serveInteract } from '../bridge/people.ts'
import { withEnvFile } from '../daemon/environment.ts'
import { fifoFolder, makeFifos } from '../daemon/folder.ts'
import { onInterrupt } from '../interrupt.ts'
import type { BridgeFlags } from '../routes/types.ts'
import { setUp } from '../setup/setup.ts'
import type { CliContext } from '../world.ts'

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
