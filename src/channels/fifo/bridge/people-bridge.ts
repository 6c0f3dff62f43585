/** Implements `bridge interact | cli | discord`: people, or their programs, talk to the agent through the FIFOs. */

import { channelSettings } from '../../../config/config.ts'
import { FailureError } from '../../../host/failure.ts'
import { createLineSplitter, type Line } from '../../../kit/lines.ts'
import { messageLine, type ReadMessage, readMessage } from '../../../kit/wire.ts'
import { connectTo } from '../../discord/channel.ts'
import { discord as kind } from '../../discord/kind.ts'
import { createAdmission, usableProfile } from '../../inbox/admission.ts'
import { isTerminal } from '../../terminal/tty.ts'
import { type BridgeOptions, linesFrom, writerTo } from './bridge-ends.ts'

const longestLine = 1_048_576
/** How long to wait for outstanding answers after the end of input. */
const LAST_ANSWER_MS = 300_000

/** Passes lines in the protocol's own format. Ends when stdin has ended and every message has its answer. */
export async function serveInteract(bridging: BridgeOptions): Promise<void> {
  const { stdout } = bridging.setup.context.process
  await converse(bridging, {
    outgoing(line) {
      const read = readMessage(line)
      return read.ok
        ? { channel: read.channel, line: `${line}\n` }
        : `${JSON.stringify(line.slice(0, 60))} has ${read.problem}; write channel, tab, text`
    },
    incoming: (line) => stdout.data(`${line}\n`),
  })
}

/** Sends typed lines to one channel, and prints its answers as text. */
export async function serveCli(bridging: BridgeOptions, { channel = 'cli' }: { readonly channel?: string }): Promise<void> {
  if (!/^[^\t\n]+$/.test(channel)) throw new FailureError('usage', `--channel ${JSON.stringify(channel)}: write one word`)
  const { stdout, stderr } = bridging.setup.context.process
  const typed = isTerminal(0)
  const prompt = () => (typed ? stderr.write('> ') : undefined)
  prompt()
  await converse(bridging, {
    outgoing: (line) => (line.trim() === '' ? void prompt() : { channel, line: messageLine({ channel, text: line }) }),
    incoming(line) {
      const read = readMessage(line)
      if (!read.ok || read.channel !== channel) return
      stdout.data(`${read.text}\n`)
      prompt()
    },
  })
}

type Talk = {
  /** Converts a line of stdin to the outgoing line and its channel, or to the problem as text; undefined when there is nothing to send. */
  readonly outgoing: (line: string) => { readonly channel: string; readonly line: string } | string | undefined
  readonly incoming: (line: string) => void
}

async function converse(bridging: BridgeOptions, { outgoing, incoming }: Talk): Promise<void> {
  const { setup, stop } = bridging
  const { stderr } = setup.context.process
  const answers = linesFrom(bridging, 'interact_out')
  const send = writerTo(bridging, 'interact_in')
  const open = createOpenQuestions(stop)

  async function type(): Promise<void> {
    for await (const line of stdinLines()) {
      const out = line.ok ? outgoing(line.text) : line.error
      if (typeof out === 'string') stderr.write(`note: not sent: ${out}\n`)
      if (typeof out !== 'object') continue
      open.asked(out.channel)
      await send(out.line)
    }
    open.last()
    setTimeout(stop, LAST_ANSWER_MS).unref()
  }

  async function listen(): Promise<void> {
    for await (const line of answers) {
      if (line.ok) incoming(line.text)
      else setup.log('warn', 'message ignored', { from: 'interact_out', why: line.error })
      open.answered(readMessage(line.text))
    }
  }

  // When listening ends, the bridge does not wait for further typing.
  await Promise.race([listen(), type().then(() => new Promise<never>(() => {}))])
}

async function* stdinLines(): AsyncGenerator<Line> {
  const splitter = createLineSplitter(longestLine)
  for await (const piece of Bun.stdin.stream()) yield* splitter.push(piece)
  const last = splitter.end()
  if (last && last.text !== '') yield last
}

/** Sends the channel id along, so that the answer returns to that channel. The FIFOs carry no names, so only listed people get through. */
export async function serveDiscord(bridging: BridgeOptions): Promise<void> {
  const { setup, signal, dir } = bridging
  const answers = linesFrom(bridging, 'interact_out')
  const send = writerTo(bridging, 'interact_in')
  const access = usableProfile(setup, kind)
  const discord = await connectTo({ setup, settings: channelSettings(setup.config, kind), signal })
  if (!discord) return
  setup.context.process.stderr.write(`ready: Discord talks to ${dir}; stop with Ctrl-C\n`)

  const admission = createAdmission({ log: setup.log, now: Date.now })

  const hear = async () => {
    for await (const { channel, text, authorId: person } of discord.messages) {
      const answer = async (words: string) => void (await discord.send(channel, words))
      if (admission.admit(access, { channel, text, from: 'discord', person, answer })) await send(messageLine({ channel, text }))
    }
    const ended = await discord.ended
    if (!ended.ok) throw new FailureError('error', `${ended.message}`)
  }

  const answer = async () => {
    for await (const line of answers) {
      const read = line.ok ? readMessage(line.text) : { ok: false as const, problem: line.error }
      const sent = read.ok ? await discord.send(read.channel, read.text) : { ok: false as const, message: `a line has ${read.problem}` }
      if (!sent.ok) setup.log('warn', 'answer not delivered', { why: sent.message })
    }
  }

  await Promise.race([hear(), answer()])
  await discord.close()
}

/** `done` is called once, when no further question will come and all are answered. */
export function createOpenQuestions(done: () => void) {
  const open = new Map<string, number>()
  const state = { ended: false }

  function count(channel: string, by: 1 | -1): void {
    const left = (open.get(channel) ?? 0) + by
    if (left > 0) open.set(channel, left)
    else open.delete(channel)
  }

  function look(): void {
    if (state.ended && open.size === 0) done()
  }

  return {
    asked: (channel: string) => count(channel, 1),
    answered(line: ReadMessage): void {
      if (line.ok) count(line.channel, -1)
      look()
    },
    /** Says that no further question will come. */
    last(): void {
      state.ended = true
      look()
    },
  }
}
