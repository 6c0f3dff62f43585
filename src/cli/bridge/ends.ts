/** The far ends of the FIFOs: what an agent writes is read here, what it waits for is written here. */

import { join } from 'node:path'
import type { Line } from '../../kit/lines.ts'
import { openFrames, openLines } from '../../service/fifo/read.ts'
import { openWriter } from '../../service/fifo/write.ts'
import type { Setup } from '../world.ts'

export type Bridging = {
  readonly setup: Setup
  readonly dir: string
  readonly signal: AbortSignal
  /** Ends the command, with 0. */
  readonly stop: () => void
}

/** An agent that does not read for this long is gone; what it should have heard is then said in the log. */
const READER_MS = 60_000

export function linesFrom({ dir, signal }: Bridging, name: 'interact_out' | 'claw_in'): AsyncIterable<Line> {
  return openLines(join(dir, name), { signal })
}

export function framesFrom({ dir, signal }: Bridging, name: 'brain_in'): AsyncIterable<Line> {
  return openFrames(join(dir, name), { signal })
}

/** @returns a function that writes one whole message, and says in the log what could not be delivered. */
export function writerTo(
  { setup, dir, signal }: Bridging,
  name: 'interact_in' | 'brain_out' | 'claw_out',
): (text: string) => Promise<void> {
  const writer = openWriter(join(dir, name))
  signal.addEventListener('abort', () => setTimeout(writer.close, 500), { once: true })
  return async (text) => {
    const written = await writer.write(text, { timeoutMs: READER_MS })
    if (!written.ok) setup.log('warn', 'not delivered', { to: name, why: written.message })
  }
}
