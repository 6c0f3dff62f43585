/** Implements `braidclaw bridge`: each bridge reads from the FIFOs what an agent writes, and writes what the agent waits for. */

import { join } from 'node:path'
import { channelSettings } from '../../config/config.ts'
import type { Conversation, ConversationOptions } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { withConversation } from '../../host/open/open-host.ts'
import { providerFor } from '../../host/setup/provider-pool.ts'
import { repeatedCall } from '../../host/toolset/direct-call.ts'
import { specOf } from '../../host/toolset/tool-selection.ts'
import { errorText } from '../../kit/errors.ts'
import { isJsonObject, parseJson } from '../../kit/json.ts'
import { createLineSplitter, frame, type Line } from '../../kit/lines.ts'
import { createId } from '../../kit/sha256.ts'
import { messageLine, type ReadMessage, readClawRequest, readMessage } from '../../kit/wire.ts'
import { toolOf } from '../../providers/fifo/fifo-provider.ts'
import { messageOf, readPayload } from '../../providers/fifo/serve.ts'
import type { AgentEvent, FailureCode, Part } from '../../runtime/event.ts'
import { type ChatRequest, type ChatResponse, type Provider, ProviderFailure, type Tool } from '../../runtime/port.ts'
import type { Redactor } from '../../security/redaction/redact.ts'
import { openFrames, openLines } from '../../service/fifo/fifo-reader.ts'
import { openWriter } from '../../service/fifo/fifo-writer.ts'
import { connectTo } from '../discord/channel.ts'
import { discord as kind } from '../discord/kind.ts'
import { createAdmission, usableProfile } from '../inbox/admission.ts'
import { refusedBy, takeTurn } from '../take-turn.ts'
import type { CliSetup } from '../terminal/context.ts'
import { stdinPieces } from '../terminal/input-stream.ts'
import { isTerminal } from '../terminal/tty.ts'

export type BridgeOptions = {
  readonly setup: CliSetup
  readonly dir: string
  readonly signal: AbortSignal
  /** Ends the command with exit code 0. */
  readonly stop: () => void
}

/** How long an agent may take to read before the message counts as undelivered, which the log then names. */
const READER_MS = 60_000
/** The time for last messages after the stop signal. */
const LEAVE_MS = 500

/** The FIFO is open when this returns. Reading throws FailureError when the FIFO is removed, because another one then takes its place. */
function piecesFrom({ dir, signal }: BridgeOptions, name: string, open: typeof openLines = openLines): AsyncIterable<Line> {
  const lines = open(join(dir, name), { signal })
  return (async function* () {
    for await (const line of lines) {
      // A line that is only too long still has its beginning.
      if (!line.ok && line.text === '') throw new FailureError('error', line.error)
      yield line
    }
  })()
}

/** @returns a function that writes one whole message, and logs what it could not deliver. */
function writerTo({ setup, dir, signal }: BridgeOptions, name: 'interact_in' | 'brain_out' | 'claw_out'): (text: string) => Promise<void> {
  const writer = openWriter(join(dir, name))
  signal.addEventListener('abort', () => setTimeout(writer.close, LEAVE_MS), { once: true })
  return async (text) => {
    const written = await writer.write(text, { timeoutMs: READER_MS })
    if (!written.ok) setup.log('warn', 'not delivered', { to: name, why: written.message })
  }
}

/** Implements `bridge brain`: our configured provider answers an agent that sends Messages API requests through two FIFOs. */
export async function serveBrain(bridging: BridgeOptions): Promise<void> {
  const { setup } = bridging
  const provider = await providerFor(setup, setup.config.defaultProvider)
  const questions = piecesFrom(bridging, 'brain_in', openFrames)
  const answer = writerTo(bridging, 'brain_out')
  setup.context.process.stderr.write(`ready: ${provider.name}/${setup.config.defaultModel} thinks for ${bridging.dir}; stop with Ctrl-C\n`)
  const brain: Brain = { bridging, provider, failures: { inARow: 0 } }
  for await (const question of questions) {
    if (question.ok && question.text.trim() === '') continue
    await answer(frame(question.ok ? await think(brain, question.text) : failed(bridging, question.error, 'fatal')))
  }
}

type Brain = { readonly bridging: BridgeOptions; readonly provider: Provider; readonly failures: { inARow: number } }

/** Returns one line: a message, or the error word for which the agent apologises. Every failure still gets an answer. */
async function think({ bridging, provider, failures }: Brain, text: string): Promise<string> {
  const { config, redactor } = bridging.setup
  const read = readPayload(text, config.defaultModel)
  if (!read.ok) return failed(bridging, read.message, 'fatal')
  try {
    const response = redactor.value(withoutSecretCalls(await whole(provider, read.request, bridging.signal), redactor))
    failures.inARow = 0
    return messageOf(response, createId('msg', crypto.getRandomValues(new Uint8Array(12))))
  } catch (error) {
    const passes = error instanceof ProviderFailure && passing.includes(error.code)
    failures.inARow = passes ? failures.inARow + 1 : 0
    return failed(bridging, errorText(error), passes && failures.inARow < 3 ? 'timeout' : 'fatal')
  }
}

/**
 * The calls go to tools that are not ours: a call that contains a secret is replaced by a note with its name, never changed into another
 * call.
 */
function withoutSecretCalls(response: ChatResponse, { inspect }: Redactor): ChatResponse {
  const parts = response.parts.map((part): Part => {
    const { held } = part.type === 'call' ? inspect(part) : { held: [] }
    if (part.type !== 'call' || held.length === 0) return part
    return { type: 'text', text: `(The call of ${part.name} was left out: its arguments hold ${held.join(' and ')}.)` }
  })
  const calls = parts.some(({ type }) => type === 'call')
  return { ...response, parts, stop: response.stop === 'tool_calls' && !calls ? 'stop' : response.stop }
}

/** Failures that a retry may repair; the third such failure in a row is reported as fatal. */
const passing: readonly FailureCode[] = ['timeout', 'network', 'server', 'rate_limit']

function failed({ setup: { log } }: BridgeOptions, why: string, word: 'timeout' | 'fatal'): string {
  log('warn', 'provider failed', { why, answered: word })
  return JSON.stringify({ error: word })
}

async function whole(provider: Provider, request: ChatRequest, signal: AbortSignal): Promise<ChatResponse> {
  for await (const chunk of provider.chat(request, signal)) if (chunk.type === 'done') return chunk.response
  throw new ProviderFailure('bad_response', `${provider.name}: the stream ended without an end`)
}

/** Implements `bridge claw`: an agent lists and calls our tools through two FIFOs; every call passes our gate and leaves a receipt. */
export async function serveClaw(bridging: BridgeOptions, { sandbox }: Pick<ConversationOptions, 'sandbox'>): Promise<void> {
  const { setup, dir, signal } = bridging
  const direct = repeatedCall()
  const options = {
    setup,
    which: { kind: 'new' },
    channel: 'claw',
    provider: direct.provider,
    systemPrompt: '',
    // Each call is independent: the journal has the earlier calls, and this provider does not read history.
    past: () => ({ history: [] }),
    sandbox,
  } as const
  await withConversation(options, async (conversation) => {
    signal.addEventListener('abort', () => conversation.cancel('SIGTERM'), { once: true })
    const requests = piecesFrom(bridging, 'claw_in')
    const answer = writerTo(bridging, 'claw_out')
    setup.context.process.stderr.write(`ready: our tools serve ${dir}; stop with Ctrl-C\n`)
    for await (const line of requests) {
      if (line.ok && line.text.trim() === '') continue
      await answer(frame(line.ok ? await respond({ bridging, conversation, direct }, line.text) : `error: the line is ${line.error}`))
    }
  })
}

type Claw = { readonly bridging: BridgeOptions; readonly conversation: Conversation; readonly direct: ReturnType<typeof repeatedCall> }

async function respond(claw: Claw, text: string): Promise<string> {
  const request = readClawRequest(text)
  if (request.type === 'list') return JSON.stringify((await toolsOf(claw.conversation)).map(specOf).map(toolOf))
  if (request.type === 'problem') return `error: the line has ${request.problem}; write list_tools, or name, tab, JSON`
  const input = request.input.trim() === '' ? {} : parseJson(request.input)
  if (!isJsonObject(input)) return `error: ${request.name}: the arguments are not a JSON object`
  claw.direct.next(request.name, input)
  return call(claw, request.name)
}

/** Looks for the tools again for each list. It omits ask_user, whose question could reach nobody here. */
async function toolsOf({ tools }: Conversation): Promise<readonly Tool[]> {
  return (await (await tools()).refresh()).filter(({ name }) => name !== 'ask_user')
}

/**
 * Reports a refusal as text, because the protocol has no other field for it. How to approve is logged for people, not sent to the caller.
 */
async function call({ bridging: { setup }, conversation }: Claw, name: string): Promise<string> {
  const seen: { result?: Extract<AgentEvent, { type: 'tool_result' }> } = {}
  const ending = await takeTurn({
    conversation,
    onGate: refusedBy(conversation),
    prompt: `tool ${name}`,
    show: (event) => {
      if (event.type === 'tool_result') seen.result = event
    },
  })
  for (const id of conversation.unanswered())
    setup.log('warn', 'approval needed', { tool: name, answer: `braidclaw approvals allow ${id}` })
  const output = typeof seen.result?.output === 'string' ? seen.result.output : ''
  return seen.result?.status === 'completed' ? output : `error: ${output || ending.message}`
}

const longestLine = 1_048_576
/** How long to wait for outstanding answers after the end of input. */
const LAST_ANSWER_MS = 300_000

/** Implements `bridge interact`: passes lines in the protocol's own format. Ends when stdin has ended and every message has its answer. */
export async function serveInteract(bridging: BridgeOptions): Promise<void> {
  const { stdout } = bridging.setup.context.process
  await relayLines(bridging, {
    outgoing(line) {
      const read = readMessage(line)
      return read.ok
        ? { channel: read.channel, line: `${line}\n` }
        : `${JSON.stringify(line.slice(0, 60))} has ${read.problem}; write channel, tab, text`
    },
    incoming: (line) => stdout.data(`${line}\n`),
  })
}

/** Implements `bridge cli`: sends typed lines to one channel, and prints its answers as text. */
export async function serveCli(bridging: BridgeOptions, { channel = 'cli' }: { readonly channel?: string }): Promise<void> {
  if (!/^[^\t\n]+$/.test(channel)) throw new FailureError('usage', `--channel ${JSON.stringify(channel)}: write one word`)
  const { stdout, stderr } = bridging.setup.context.process
  const typed = isTerminal(0)
  const prompt = () => (typed ? stderr.write('> ') : undefined)
  prompt()
  await relayLines(bridging, {
    outgoing: (line) => (line.trim() === '' ? void prompt() : { channel, line: messageLine({ channel, text: line }) }),
    incoming(line) {
      const read = readMessage(line)
      if (!read.ok || read.channel !== channel) return
      stdout.data(`${read.text}\n`)
      prompt()
    },
  })
}

type LineTranslation = {
  /** Converts a line of stdin to the outgoing line and its channel, or to the problem as text; undefined when there is nothing to send. */
  readonly outgoing: (line: string) => { readonly channel: string; readonly line: string } | string | undefined
  readonly incoming: (line: string) => void
}

async function relayLines(bridging: BridgeOptions, { outgoing, incoming }: LineTranslation): Promise<void> {
  const { setup, stop } = bridging
  const { stderr } = setup.context.process
  const answers = piecesFrom(bridging, 'interact_out')
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
  for await (const piece of stdinPieces()) yield* splitter.push(piece)
  const last = splitter.end()
  if (last && last.text !== '') yield last
}

/**
 * Implements `bridge discord`: sends the channel id along, so that the answer returns to that channel. The FIFOs carry no names, so only listed
 * people get through.
 */
export async function serveDiscord(bridging: BridgeOptions): Promise<void> {
  const { setup, signal, dir } = bridging
  const answers = piecesFrom(bridging, 'interact_out')
  const send = writerTo(bridging, 'interact_in')
  const access = usableProfile(setup, kind)
  const discord = await connectTo({ setup, settings: channelSettings(setup.config, kind), signal })
  if (!discord) return
  setup.context.process.stderr.write(`ready: Discord talks to ${dir}; stop with Ctrl-C\n`)

  const admission = createAdmission({ log: setup.log, now: Date.now })

  const relayMessages = async () => {
    for await (const { channel, text, authorId: person } of discord.messages) {
      const answer = async (words: string) => void (await discord.send(channel, words))
      if (admission.admit(access, { channel, text, from: 'discord', person, answer })) await send(messageLine({ channel, text }))
    }
    const ended = await discord.ended
    if (!ended.ok) throw new FailureError('error', ended.message)
  }

  const answer = async () => {
    for await (const line of answers) {
      const read = line.ok ? readMessage(line.text) : { ok: false as const, problem: line.error }
      const sent = read.ok ? await discord.send(read.channel, read.text) : { ok: false as const, message: `a line has ${read.problem}` }
      if (!sent.ok) setup.log('warn', 'answer not delivered', { why: sent.message })
    }
  }

  await Promise.race([relayMessages(), answer()])
  await discord.close()
}

/** Counts open questions. Calls `done` once, when no further question will come and all are answered. */
export function createOpenQuestions(done: () => void) {
  const open = new Map<string, number>()
  const state = { ended: false }

  function count(channel: string, by: 1 | -1): void {
    const left = (open.get(channel) ?? 0) + by
    if (left > 0) open.set(channel, left)
    else open.delete(channel)
  }

  function endIfDone(): void {
    if (state.ended && open.size === 0) done()
  }

  return {
    asked: (channel: string) => count(channel, 1),
    answered(line: ReadMessage): void {
      if (line.ok) count(line.channel, -1)
      endIfDone()
    },
    /** Says that no further question will come. */
    last(): void {
      state.ended = true
      endIfDone()
    },
  }
}
