/** Connects the two FIFOs through which people talk: each line in is a message, each line out an answer. */

import { FailureError } from '../../host/failure.ts'
import type { Line } from '../../kit/lines.ts'
import { messageLine, readMessage } from '../../kit/wire.ts'
import type { Log } from '../../runtime/port.ts'
import { openLines } from '../../service/fifo/fifo-reader.ts'
import { openWriter } from '../../service/fifo/fifo-writer.ts'
import type { Channel, InboundMessage } from '../inbox/channel-api.ts'

export type FifoWriteResult = { readonly ok: true } | { readonly ok: false; readonly message: string }

export type FifoMessages = {
  readonly lines: AsyncIterable<Line>
  /** Resolves when the whole line is in the pipe, or when it gives up writing. */
  readonly write: (line: string) => Promise<FifoWriteResult>
  readonly log: Log
}

/** How long a line waits for its reader: an absent reader may return, but must not stop the others. */
const READER_MS = 10_000

/** The FIFOs must exist. */
export function createFifoChannel(dir: string): Channel {
  const state: { write?: FifoMessages['write'] } = {}
  return {
    name: 'fifo',
    async start(host, signal) {
      const writer = openWriter(`${dir}/interact_out`)
      const write = (line: string) => writer.write(line, { timeoutMs: READER_MS, signal })
      state.write = write
      const lines = openLines(`${dir}/interact_in`, { signal })
      for await (const message of fifoMessages({ lines, write, log: host.setup.log })) host.receive(message)
      writer.close()
      if (!signal.aborted) throw new FailureError('error', `the FIFOs in "${dir}" were removed by somebody; start again`)
    },
    async send(channel, text) {
      const line = messageLine({ channel, text: text.trimEnd() })
      const written = (await state.write?.(line)) ?? { ok: false, message: 'the channel is not started' }
      if (!written.ok) throw new Error(written.message)
    },
    supportsDraftUpdates: () => false,
  }
}

/** Logs a malformed line with its beginning, because it has no channel to answer. */
export async function* fifoMessages({ lines, write, log }: FifoMessages): AsyncGenerator<InboundMessage> {
  const ignored = (why: string) => log('warn', 'message ignored', { from: 'fifo', why })
  for await (const line of lines) {
    const read = readMessage(line.text)
    if (!line.ok) {
      ignored(line.error)
      if (read.ok) await answer({ write, log }, read.channel, `[not answered: the message is ${line.error}]`)
    } else if (line.text.trim() === '') log('debug', 'empty line', { from: 'fifo' })
    else if (!read.ok) ignored(`${JSON.stringify(line.text.slice(0, 60))} has ${read.problem}; write channel, tab, text`)
    else {
      const { channel, text } = read
      // The wire carries no names of people: whoever writes to a channel is that channel's person.
      yield { channel, text, from: 'fifo', person: channel, answer: (words) => answer({ write, log }, channel, words) }
    }
  }
}

async function answer({ write, log }: Pick<FifoMessages, 'write' | 'log'>, channel: string, text: string): Promise<void> {
  const written = await write(messageLine({ channel, text: text.trimEnd() }))
  if (!written.ok) log('warn', 'answer not delivered', { to: channel, why: written.message })
}
