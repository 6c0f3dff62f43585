/** Opens the far ends of the FIFOs: it reads what an agent writes, and writes what the agent waits for. */

import { join } from 'node:path'
import { FailureError } from '../../../host/failure.ts'
import type { Line } from '../../../kit/lines.ts'
import { openFrames, openLines, type ReadOptions } from '../../../service/fifo/fifo-reader.ts'
import { openWriter } from '../../../service/fifo/fifo-writer.ts'
import type { CliSetup } from '../../terminal/context.ts'

export type BridgeOptions = {
  readonly setup: CliSetup
  readonly dir: string
  readonly signal: AbortSignal
  /** Ends the command with exit code 0. */
  readonly stop: () => void
}

/** An agent that does not read for this long is gone; the log then names the undelivered message. */
const READER_MS = 60_000
/** The time for last messages after the stop signal. */
const LEAVE_MS = 500

/** The FIFO is open when this returns. Reading throws FailureError when the FIFO is removed, because another one then takes its place. */
export function linesFrom(bridging: BridgeOptions, name: 'interact_out' | 'claw_in'): AsyncIterable<Line> {
  return unlessGone(bridging, name, openLines)
}

export function framesFrom(bridging: BridgeOptions, name: 'brain_in'): AsyncIterable<Line> {
  return unlessGone(bridging, name, openFrames)
}

type Open = (path: string, options: ReadOptions) => AsyncIterable<Line>

function unlessGone({ dir, signal }: BridgeOptions, name: string, open: Open): AsyncIterable<Line> {
  const lines = open(join(dir, name), { signal })
  return (async function* () {
    for await (const line of lines) {
      // A line that is only too long still has its beginning.
      if (!line.ok && line.text === '') throw new FailureError('error', `${line.error}`)
      yield line
    }
  })()
}

/** @returns a function that writes one whole message, and logs what it could not deliver. */
export function writerTo(
  { setup, dir, signal }: BridgeOptions,
  name: 'interact_in' | 'brain_out' | 'claw_out',
): (text: string) => Promise<void> {
  const writer = openWriter(join(dir, name))
  signal.addEventListener('abort', () => setTimeout(writer.close, LEAVE_MS), { once: true })
  return async (text) => {
    const written = await writer.write(text, { timeoutMs: READER_MS })
    if (!written.ok) setup.log('warn', 'not delivered', { to: name, why: written.message })
  }
}
