/** The far ends of the FIFOs: what an agent writes is read here, what it waits for is written here. */

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
  /** Ends the command, with 0. */
  readonly stop: () => void
}

/** An agent that does not read for this long is gone; what it should have heard is then said in the log. */
const READER_MS = 60_000
/** For the last words, once we were told to stop. */
const LEAVE_MS = 500

/** Open when this returns. Reading them throws FailureError when the FIFO is taken away: its other end is then another one. */
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

/** @returns a function that writes one whole message, and says in the log what could not be delivered. */
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
