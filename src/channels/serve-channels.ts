/** Runs the daemon: it listens to all channels and serves their conversations in parallel until the signal stops it. */

import { existsSync } from 'node:fs'
import { channelSettings } from '../config/config.ts'
import type { ChannelProfile } from '../host/access/channel-profile.ts'
import type { ConversationOptions, Setup } from '../host/api.ts'
import { FailureError } from '../host/failure.ts'
import { openHost } from '../host/open/open-host.ts'
import { serveSchedules } from '../host/schedules/serve-schedules.ts'
import type { AgentProfile } from '../host/setup/agent-profile.ts'
import { howToConnect, isOffline } from '../host/setup/answering-provider.ts'
import { aborted, sleep } from '../kit/abort.ts'
import { errorText } from '../kit/errors.ts'
import { thisProcess } from '../memory/journal/process-owner.ts'
import type { ChannelStore } from '../memory/recovery/channel-store.ts'
import type { ScheduleStore } from '../memory/schedule-store.ts'
import type { Log, Provider } from '../runtime/port.ts'
import { warmUp } from '../service/own-program.ts'
import { beginByText, type SopChats, serveSops, sopCommand } from '../sop/serve-sops.ts'
import { createAgentConversations } from './agent-conversations.ts'
import { createAnswers } from './answer-message.ts'
import { type AdmittedMessage, createAdmission, usableProfile } from './inbox/admission.ts'
import type { Channel, ChannelHost, ChannelKind, InboundMessage } from './inbox/channel-api.ts'
import { channelKinds } from './list.ts'
import { createChannelQuestions } from './outbox/ask-in-channel.ts'
import { refusedBy, takeTurn } from './take-turn.ts'

export type ServeOptions = Pick<ConversationOptions, 'tools' | 'sandbox'> & {
  readonly setup: Setup
  readonly agentProfile: AgentProfile
  /** The folder of the FIFOs. */
  readonly dir: string
  readonly provider: Provider
  /** Channels that are not served although their settings enable them. */
  readonly without?: readonly string[]
  /** Channels without which the others end too. */
  readonly vital?: readonly string[]
  /** Called when all channels are listening, with the places where people reach them. */
  readonly ready: (places: readonly string[]) => void
  /** Stops the daemon when aborted. */
  readonly signal: AbortSignal
}

/** How long current answers may take after the stop signal, and then how long they may take to be written once they are cancelled. */
const FINISH_MS = 3_000
const CANCELLED_MS = 500
/** How long a channel may take to stop, and a compaction to be aborted. */
const LEAVE_MS = 1_000
/** After this time everything written before the stop signal has been read. */
const HEARD_MS = 20

/** Resolves when everything has stopped. @throws FailureError when it cannot start or continue */
export async function serve({ setup, dir, ready, without = [], vital: needed = [], ...options }: ServeOptions): Promise<void> {
  const { signal } = options
  const host = await openHost(setup, { ahead: false })
  const { log } = setup
  try {
    const conversations = createAgentConversations({ ...options, host })
    const kinds = channelKinds
      .filter(({ name }) => !without.includes(name))
      .map((kind) => ({ kind, settings: channelSettings(setup.config, kind) }))
      .filter(({ kind, settings }) => kind.isOn(settings))
      .map((each) => ({ ...each, access: usableProfile(setup, each.kind) }))
    for (const missing of unusedTokens(setup, without)) log('warn', 'channel not started', missing)
    // Opens the agent's own conversation first, so that its errors surface before the first message.
    if (kinds.some(({ kind }) => !kind.people?.byToken)) await conversations.answering({})
    const channels = await Promise.all(
      kinds.map(async ({ kind, settings, access }) => ({ kind, access, channel: await kind.create({ settings, setup, dir }) })),
    )
    const { provider, tools, sandbox } = options
    const answering = { provider, tools, sandbox }
    const { addresses, channels: stored } = (await host.schedules()).store
    const report = createTroubleReport(stored, log)
    const questions = createChannelQuestions()
    const answers = createAnswers({
      log,
      answering: conversations.answering,
      questions,
      schedules: host.schedules,
      sops: (text, { from, approver, access, channel: recipient }) =>
        sopCommand(text, host, from, { mayApprove: approver !== undefined, place: { channel: access.channel, recipient } }),
      troubles: stored.troubles,
    })
    const queue = createMessageQueue<AdmittedMessage>({ take: answers.take, log })
    const admission = createAdmission({ log, now: Date.now })
    /** Remembers the address, so that later answers can be sent there, by another process too. */
    const taken = ({ channel }: ChannelProfile, message: InboundMessage, conversationId: string) => {
      message.taken?.(conversationId)
      addresses.keep(channel, conversationId, message.channel)
    }
    /** Uses the profile of the channel that received the message, whatever the message says. */
    const hostFor = (access: ChannelProfile): ChannelHost => ({
      ...host,
      conversation(which, options) {
        warmUp()
        return host.conversation(which, { ...answering, ...options })
      },
      stopping: signal,
      running: () => channels.map(({ kind }) => kind.name),
      channelStore: stored,
      trouble: (why) => void report(access.channel, why === undefined ? undefined : { state: 'out of reach', why }),
      receive(message) {
        warmUp()
        const admitted = admission.admit(access, { ...message, taken: (id) => taken(access, message, id) })
        if (admitted && admitted.command === undefined && !questions.takeAnswer(admitted)) queue.put(admitted)
        else {
          if (admitted) admitted.command?.()
          message.settled?.()
        }
      },
    })
    const [stopListening, ending] = [new AbortController(), new AbortController()]
    const vital = Promise.withResolvers<void>()
    const over = vital.promise.then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    const listening = channels.map(({ kind, access, channel }) => {
      const start = () => channel.start(hostFor(access), stopListening.signal)
      if (kind.vital || needed.includes(kind.name)) return start().then(vital.resolve, vital.reject)
      const failed = (why: string, waitMs: number) => {
        const isNews = report(kind.name, { state: 'failed', why })
        if (isNews) log('error', 'channel failed', { channel: kind.name, why, startsAgainInMs: waitMs })
      }
      return keepListening({ start, failed, signal: AbortSignal.any([signal, stopListening.signal]) })
    })
    /** The channels that end their turns themselves, in the same time. */
    const own = listening.filter((_, at) => kinds[at]?.kind.people?.byToken)
    const sending = sendingOf(channels, addresses)
    const turns = { takeTurn, refusedBy, procedure: beginByText }
    const schedules = await serveSchedules(host, { ...answering, turns, channels: sending })
    const ask: SopChats['ask'] = ({ channel: from, recipient: channel }, question, wasSent) =>
      questions.ask({ from, channel, answer: async (text) => (wasSent ? undefined : sending.get(from)?.send(channel, text)) }, question)
    const sopTurns = { takeTurn, onGate: refusedBy, options: { provider, sandbox } }
    const procedures = await serveSops(host, sopTurns, { channels: sending, ask })
    const runs = existsSync(`${setup.paths.home}/wiggum`)
      ? (await import('../host/run/wiggum/serve-wiggum.ts')).serveWiggum(host, { tools }, ending.signal)
      : undefined
    const failed = await Promise.race([over, Bun.sleep(0)])
    if (!failed) ready(channels.flatMap(({ channel }) => channel.place?.() ?? []))
    const ended = failed ?? (await Promise.race([aborted(signal), over]))
    ending.abort('SIGTERM')
    const schedulesClosed = Promise.all([schedules.close(FINISH_MS, 'SIGTERM'), procedures.close(FINISH_MS), runs?.closed])
    await Promise.all([
      finish(async () => void (await Promise.all([queue.close(), schedulesClosed])), conversations.cancel, stopListening),
      Promise.race([Promise.all(own), Bun.sleep(FINISH_MS + CANCELLED_MS)]),
    ])
    await Promise.race([Promise.all([...listening, answers.settled()]), Bun.sleep(LEAVE_MS)])
    if (ended) throw ended.error
  } finally {
    await host.close()
  }
}

/** Names each channel that is off although its token is set, with all that it lacks in one line. */
function unusedTokens({ config, paths, context: { env } }: Setup, without: readonly string[]) {
  return channelKinds.flatMap((kind) => {
    const settings = channelSettings(config, kind)
    const variable: unknown = Reflect.get(settings, 'tokenEnv')
    if (kind.isOn(settings) || without.includes(kind.name) || typeof variable !== 'string' || !env[variable]) return []
    const model = isOffline(config, config.defaultProvider) ? `; no model is configured either: ${howToConnect(env)}` : ''
    const lines = `[channels.${kind.name}] with enabled = true and users = ["ID of a person"]`
    return [{ channel: kind.name, why: `${variable} is set, but ${paths.config} lacks ${lines}${model}` }]
  })
}

/** Returns how the answers of schedules and procedures go out through these channels. */
function sendingOf(
  channels: readonly { readonly kind: ChannelKind; readonly channel: Channel }[],
  addresses: ScheduleStore['addresses'],
): SopChats['channels'] {
  const sending = channels.map(({ kind: { name }, channel }) => {
    const send = async (to: string, text: string) => {
      const address = addresses.of(name, to) ?? to
      if (address.startsWith('conversation_'))
        throw new FailureError('error', `no message of ${to} arrived on the channel ${name}, so nothing can be sent there`)
      return channel.send(address, text)
    }
    return [name, { send }] as const
  })
  return new Map(sending)
}

/** How long a channel that failed rests: 30 s, 1, 2 and from then on 5 minutes. */
const [restMs, longestRestMs] = [30_000, 300_000]

/** `failed` gets the reason of each failure. */
type Listening = Pick<ServeOptions, 'signal'> & { start(): Promise<void>; failed(why: string, waitMs: number): void; rest?: typeof sleep }

/** Starts a channel at once, so that a client that sees "ready" is served, and again after each failure. Never rejects. */
export async function keepListening({ start, failed, signal, rest = sleep }: Listening): Promise<void> {
  for (let waitMs = restMs; !signal.aborted; waitMs = Math.min(longestRestMs, waitMs * 2)) {
    try {
      return await start()
    } catch (error) {
      if (signal.aborted) return
      failed(errorText(error), waitMs)
      await rest(waitMs, signal)
    }
  }
}

/** Returns what keeps the trouble of a channel where other processes, such as `doctor`, read it. It never throws. */
export function createTroubleReport(store: ChannelStore, log: Log) {
  return (channel: string, trouble?: Parameters<ChannelStore['setTrouble']>[2]): boolean => {
    try {
      const isNews = store.setTrouble(channel, thisProcess(), trouble)
      if (isNews && !trouble) log('info', 'channel works again', { channel })
      return isNews
    } catch (error) {
      log('warn', 'trouble of a channel not kept', { channel, why: errorText(error) })
      return true
    }
  }
}

/** Gives current answers some time, then cancels them; a cancelled answer says so. Messages that arrived meanwhile get a refusal. */
async function finish(close: () => Promise<void>, cancel: (by: string) => void, stopListening: AbortController): Promise<void> {
  const late = setTimeout(() => cancel('SIGTERM'), FINISH_MS)
  const tooLate = setTimeout(() => stopListening.abort(), FINISH_MS + CANCELLED_MS)
  await close()
  await Bun.sleep(HEARD_MS)
  await close()
  clearTimeout(late)
  clearTimeout(tooLate)
  stopListening.abort()
}

type MessageQueue<M extends InboundMessage> = {
  /** Returns at once; when too many messages wait in the conversation, the message gets a refusal as its answer. */
  put(message: M): void
  /** Stops accepting messages: waiting and later messages get a refusal. Resolves when the current messages are answered. */
  close(): Promise<void>
}

type QueueOptions<M extends InboundMessage> = {
  /** Answers one message, and never rejects. */
  readonly take: (message: M) => Promise<void>
  readonly log: Log
  /** The most messages, and the most characters of them, that may wait in one conversation. */
  readonly most?: number
  readonly mostChars?: number
}

const waitingWords = (count: number) => (count === 1 ? '1 message waits' : `${count} messages wait`)

type ConversationQueue<M extends InboundMessage> = { readonly waiting: M[]; chars: number }

/** Queues messages: it processes messages of one conversation in order of arrival, and different conversations in parallel. */
export function createMessageQueue<M extends InboundMessage>({
  take,
  log,
  most = 1_000,
  mostChars = 16_777_216,
}: QueueOptions<M>): MessageQueue<M> {
  /** The conversations with running or waiting messages. */
  const lines = new Map<string | undefined, ConversationQueue<M>>()
  const state: { closed: boolean; readonly working: Set<Promise<void>> } = { closed: false, working: new Set() }

  async function work(name: string | undefined, line: ConversationQueue<M>): Promise<void> {
    for (let next = line.waiting.shift(); next !== undefined; next = line.waiting.shift()) {
      line.chars -= next.text.length
      await take(next)
    }
    lines.delete(name)
  }

  function keep(work: Promise<void>): void {
    state.working.add(work)
    void work.finally(() => state.working.delete(work))
  }

  function put(message: M): void {
    const { conversation: name, text } = message
    const existing = lines.get(name)
    const line: ConversationQueue<M> = existing ?? { waiting: [], chars: 0 }
    const why = refusal(line, text)
    if (why !== undefined) {
      keep(refuse(message, why))
      return
    }
    line.waiting.push(message)
    line.chars += text.length
    if (existing) return
    lines.set(name, line)
    keep(work(name, line))
  }

  function refusal({ waiting, chars }: ConversationQueue<M>, text: string): string | undefined {
    if (state.closed) return 'the assistant is being stopped; send it again later'
    const isFull = waiting.length >= most || chars + text.length > mostChars
    return isFull ? `${waitingWords(waiting.length)} here already; send it again later` : undefined
  }

  async function refuse({ channel, from, text, answer, settled }: InboundMessage, why: string): Promise<void> {
    log('warn', 'message not answered', { from, channel, beginning: text.slice(0, 80), why })
    await answer(`[not answered: ${why}]`)
    settled?.()
  }

  return {
    put,
    async close() {
      state.closed = true
      for (const line of lines.values()) for (const message of line.waiting.splice(0)) put(message)
      while (state.working.size > 0) await Promise.all(state.working)
    },
  }
}
