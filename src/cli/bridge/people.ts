/** `bridge interact | cli | discord`: people, or their programs, talk to the agent behind the FIFOs. */

import { printable } from '../../channels/render.ts'
import { isTerminal } from '../../channels/tty.ts'
import { createLineSplitter } from '../../kit/lines.ts'
import { messageLine, readMessage } from '../../kit/wire.ts'
import { connectTo } from '../daemon/discord.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { BridgeFlags } from '../routes/types.ts'
import { type Bridging, linesFrom, writerTo } from './ends.ts'

const longestLine = 1_048_576
/** After the end of input: how long answers that are under way are waited for. */
const LAST_ANSWER_MS = 300_000

/** Lines as they stand on the wire. Ends when stdin has ended and as many answers came as messages went. */
export async function serveInteract(bridging: Bridging): Promise<void> {
  const { stdout, stderr } = bridging.setup.context.process
  await converse(bridging, {
    outgoing(line) {
      const read = readMessage(line)
      if (read.ok) return `${line}\n`
      stderr.write(`note: ${JSON.stringify(line.slice(0, 60))} has ${read.problem}; write channel, tab, text\n`)
      return undefined
    },
    incoming: (line) => stdout.write(`${line}\n`),
  })
}

/** What is typed, for one channel, and its answers as text. */
export async function serveCli(bridging: Bridging, { channel = 'cli' }: BridgeFlags): Promise<void> {
  if (/[\t\n]/.test(channel) || channel === '')
    throw new CliExit(exitCodes.usage, `error: --channel ${JSON.stringify(channel)}: write one word`)
  const { stdout, stderr } = bridging.setup.context.process
  const prompt = () => (isTerminal(0) ? stderr.write('> ') : undefined)
  prompt()
  await converse(bridging, {
    outgoing: (line) => (line.trim() === '' ? undefined : messageLine({ channel, text: line })),
    incoming(line) {
      const read = readMessage(line)
      if (!read.ok || read.channel !== channel) return
      stdout.write(`${isTerminal(1) ? printable(read.text) : read.text}\n`)
      prompt()
    },
  })
}

type Talk = {
  /** A line of stdin as it goes out, or nothing. */
  readonly outgoing: (line: string) => string | undefined
  readonly incoming: (line: string) => void
}

async function converse(bridging: Bridging, { outgoing, incoming }: Talk): Promise<void> {
  const { setup, signal, stop } = bridging
  const answers = linesFrom(bridging, 'interact_out')
  const send = writerTo(bridging, 'interact_in')
  const open = { count: 0, ended: false }
  const enough = () => {
    if (open.ended && open.count <= 0) stop()
  }
  const typing = (async () => {
    for await (const line of stdinLines(signal)) {
      const out = outgoing(line)
      if (out === undefined) continue
      open.count++
      await send(out)
    }
    open.ended = true
    setTimeout(stop, LAST_ANSWER_MS).unref()
    enough()
  })()
  for await (const line of answers) {
    if (line.ok) incoming(line.text)
    else setup.log('warn', 'message ignored', { from: 'interact_out', why: line.error })
    open.count--
    enough()
  }
  await Promise.race([typing, Promise.resolve()])
}

async function* stdinLines(signal: AbortSignal): AsyncGenerator<string> {
  const splitter = createLineSplitter(longestLine)
  for await (const piece of Bun.stdin.stream()) {
    for (const line of splitter.push(piece)) if (line.ok) yield line.text
    if (signal.aborted) return
  }
  const last = splitter.end()
  if (last?.ok && last.text !== '') yield last.text
}

/** The channel id goes along, so that the answer finds its way back. */
export async function serveDiscord(bridging: Bridging): Promise<void> {
  const { setup, signal } = bridging
  const { DISCORD_API } = await import('../../channels/discord/options.ts')
  const discord = await connectTo(setup, { restApi: setup.config.channels.discord.api ?? DISCORD_API, signal })
  const send = writerTo(bridging, 'interact_in')
  setup.context.process.stderr.write(`ready: Discord talks to ${bridging.dir}; stop with Ctrl-C\n`)
  const hearing = (async () => {
    for await (const { channel, text } of discord.messages) await send(messageLine({ channel, text }))
    const ended = await discord.ended
    if (!ended.ok) throw new CliExit(exitCodes.error, `error: ${ended.message}`)
  })()
  const answering = (async () => {
    for await (const line of linesFrom(bridging, 'interact_out')) {
      const read = line.ok ? readMessage(line.text) : undefined
      const sent = read?.ok ? await discord.send(read.channel, read.text) : undefined
      if (!sent?.ok) setup.log('warn', 'answer not delivered', { why: sent?.message ?? 'the line is no message' })
    }
  })()
  await Promise.race([hearing, answering])
  await discord.close()
}
