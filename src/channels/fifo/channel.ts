/** The pair of FIFOs through which people talk: each line in is a message, each line out an answer. */

import type { Line } from '../../kit/lines.ts'
import { messageLine, readMessage } from '../../kit/wire.ts'
import type { Log } from '../../runtime/port.ts'
import type { Heard } from '../inbound-message.ts'

export type Written = { readonly ok: true } | { readonly ok: false; readonly message: string }

export type FifoChannelOptions = {
  readonly lines: AsyncIterable<Line>
  /** Resolves when the whole line is in the pipe, or was given up. */
  readonly write: (line: string) => Promise<Written>
  readonly log: Log
}

/** What is no message cannot be answered, having no channel: it is said in the log, with its beginning. */
export async function* fifoMessages({ lines, write, log }: FifoChannelOptions): AsyncGenerator<Heard> {
  const ignored = (why: string) => log('warn', 'message ignored', { from: 'fifo', why })
  for await (const line of lines) {
    const read = readMessage(line.text)
    if (!line.ok) {
      ignored(line.error)
      if (read.ok) await answer({ write, log }, read.channel, `[not answered: the message is ${line.error}]`)
    } else if (line.text.trim() === '') log('debug', 'empty line', { from: 'fifo' })
    else if (!read.ok) ignored(`${JSON.stringify(line.text.slice(0, 60))} has ${read.problem}; write channel, tab, text`)
    else yield { channel: read.channel, text: read.text, from: 'fifo', answer: (text) => answer({ write, log }, read.channel, text) }
  }
}

async function answer({ write, log }: Pick<FifoChannelOptions, 'write' | 'log'>, channel: string, text: string): Promise<void> {
  const written = await write(messageLine({ channel, text: text.trimEnd() }))
  if (!written.ok) log('warn', 'answer not delivered', { to: channel, why: written.message })
}
