/** Connects Telegram as one of the channels when the configuration enables it. */

import { join } from 'node:path'
import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { visionProblem } from '../../host/setup/vision-provider.ts'
import { aborted, sleep } from '../../kit/abort.ts'
import { isObject } from '../../kit/json.ts'
import { flat } from '../../kit/text.ts'
import type { Log } from '../../runtime/port.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import type { Channel, ChannelHost, TurnPlace } from '../inbox/channel-api.ts'
import { createDelivery, type Delivery } from '../outbox/delivery.ts'
import { assertSent, FINAL_TIMES, type RetryOptions } from '../outbox/send-pieces.ts'
import { addressOf, type BotApi, type CallOptions, createBotApi, createOutbox, type Outbox, refusalOf } from './bot-api.ts'
import { completeText } from './complete-text.ts'
import { type ChatCommand, joinAlbums, parseUpdate, type Self, type TelegramMessage } from './inbound.ts'
import { type Ledger, openLedger } from './ledger.ts'
import type { TelegramSettings } from './settings.ts'

const TELEGRAM_API = 'https://api.telegram.org'

/** The most open messages before it stops to fetch more; Telegram keeps the others for a day. */
const MOST_OPEN = 200

/** @throws FailureError `error` for wrong settings */
export async function openTelegramChannel(setup: Setup, settings: TelegramSettings): Promise<Channel> {
  const { log, context } = setup
  const problem = visionProblem(setup)
  if (problem !== undefined) throw new FailureError('error', problem)
  const token = tokenOf(setup, settings)
  const api = createBotApi({
    api: settings.api ?? TELEGRAM_API,
    token,
    fetch: createProviderFetch({ baseUrl: settings.api ?? TELEGRAM_API }),
  })
  const state: { outbox?: Outbox; open?: ReturnType<typeof open>; known?: ReturnType<typeof know> } = {}

  function open(host: ChannelHost, signal: AbortSignal) {
    // The next start takes the messages that this one has not taken before it stops.
    const listening = AbortSignal.any([signal, host.stopping])
    const ask = createRetryingCall({ api, sleep, log, signal: listening, trouble: host.trouble })
    const moved = (from: string, to: string) => {
      log('info', 'telegram chat moved', { from, to })
      host.channelStore.moveAddress('telegram', from, to)
      state.known?.ledger.move(from, to)
    }
    state.outbox = createOutbox({ api, sleep, log, signal, moved })
    return { host, signal, listening, ask, moved, outbox: state.outbox }
  }

  /** Continues with the open messages of an earlier process. */
  function know(self: Self, { host, outbox, signal }: ReturnType<typeof open>) {
    const ledger = openLedger(join(context.home, 'telegram', `bot-${self.id}.json`), log)
    const delivery = createDelivery({ channel: 'telegram', store: host.channelStore, send: outbox.send, sleep, log, signal })
    const receiver = createReceiver({ host, api, outbox, delivery, ledger, settings, signal })
    delivery.resume()
    receiver.resume()
    return { ledger, receiver }
  }

  return {
    name: 'telegram',
    async start(host, signal) {
      state.open ??= open(host, signal)
      const { ask, listening, moved } = state.open
      const self = selfIn(await ask('getMe', {}))
      if (self) {
        log('info', 'channel started', { channel: 'telegram', bot: self.username })
        state.known ??= know(self, state.open)
        const { ledger, receiver } = state.known
        await readUpdates({
          ask,
          signal: listening,
          offset: ledger.offset,
          take: (updates, next) =>
            ledger.take(next, joinAlbums(updates.flatMap((update) => messagesIn(update, self, { log, moved }))), receiver.receive),
          async room() {
            while (ledger.open().length >= MOST_OPEN && !listening.aborted) await sleep(200, listening)
          },
        })
      } else if (!listening.aborted)
        throw new FailureError('error', 'getMe: Telegram does not say who the bot is; check channels.telegram.api')
      // Until then answers of turns that are under way are sent.
      await aborted(signal)
    },
    async send(address, text) {
      assertSent((await state.outbox?.send(address, text)) ?? { ok: false, message: 'Telegram is not connected' })
    },
    supportsDraftUpdates: () => false,
  }
}

function tokenOf({ context, redactor }: Setup, { tokenEnv }: TelegramSettings): string {
  const token = context.env[tokenEnv] ?? ''
  if (token !== '') redactor.register(token, tokenEnv)
  if (token === '') throw new FailureError('error', `${tokenEnv}: is empty; copy the token that @BotFather gave you for the bot`)
  if (!/^\d{1,20}:[\w-]{10,100}$/.test(token))
    throw new FailureError(
      'error',
      `${tokenEnv}: is not the token of a bot, which is digits, ":" and letters; copy it again from @BotFather`,
    )
  return token
}

function selfIn(me: unknown): Self | undefined {
  if (!isObject(me) || typeof me.id !== 'number') return undefined
  return { id: me.id, username: typeof me.username === 'string' ? me.username : '' }
}

function messagesIn(update: unknown, self: Self, { log, moved }: { log: Log; moved(from: string, to: string): void }): TelegramMessage[] {
  const found = parseUpdate(update, self)
  if (found.kind === 'no text') log('warn', 'telegram message ignored', { chat: found.chat, messageId: found.messageId, reason: found.why })
  if (found.kind === 'moved') moved(found.from, found.to)
  return found.kind === 'message' ? [found.message] : []
}

/** How long Telegram may hold a request while there are no updates, in seconds. */
const HOLD_S = 30

/** @returns milliseconds: 1, 2, 4 … and from then on 60 s */
export function pauseMs(failures: number): number {
  return Math.min(60_000, 1_000 * 2 ** Math.min(failures, 10))
}

type RetryingCall = RetryOptions & { readonly api: BotApi; readonly trouble?: ChannelHost['trouble'] }

/** After so many failures in a row an outage shows outside of the log. */
const SHOWN_AFTER = 3

/**
 * Calls until there is an answer, however long Telegram is out of reach: one line in the log when that begins, and one when it ends.
 * @returns undefined when the signal aborted @throws FailureError `error` when a person has to change something
 */
export function createRetryingCall({ api, sleep, log, signal, trouble: report = () => {} }: RetryingCall) {
  const trouble = { failures: 0, finals: 0 }
  return async (method: string, params: object, asking: Omit<CallOptions, 'signal'> = {}): Promise<unknown> => {
    while (!signal.aborted) {
      try {
        const result = await api.call(method, params, { ...asking, signal })
        if (trouble.failures > 0) log('info', 'telegram reached again', { failures: trouble.failures })
        if (trouble.failures >= SHOWN_AFTER) report()
        trouble.failures = trouble.finals = 0
        return result
      } catch (error) {
        if (signal.aborted) return undefined
        const refusal = refusalOf(error, method)
        trouble.finals = refusal.kind === 'final' ? trouble.finals + 1 : 0
        if (trouble.finals >= FINAL_TIMES) {
          trouble.failures = Math.max(trouble.failures, SHOWN_AFTER)
          throw new FailureError('error', refusal.message)
        }
        if (trouble.failures === 0) log('warn', 'telegram out of reach', { why: refusal.message, next: 'asked again until it answers' })
        const waitMs = refusal.kind === 'wait' ? refusal.ms : pauseMs(trouble.failures)
        trouble.failures += 1
        if (trouble.failures >= SHOWN_AFTER) report(refusal.message)
        await sleep(waitMs, signal).catch(() => {})
      }
    }
    return undefined
  }
}

type Updates = {
  readonly ask: ReturnType<typeof createRetryingCall>
  readonly signal: AbortSignal
  readonly offset: () => number | undefined
  /** Gets the updates in order; Telegram forgets them once it has returned. */
  readonly take: (updates: readonly unknown[], next: number) => void
  /** Resolves when more messages may come. */
  readonly room: () => Promise<void>
}

/** Resolves when the signal aborts. @throws as `createPatience` */
export async function readUpdates({ ask, signal, offset, take, room }: Updates): Promise<void> {
  while (!signal.aborted) {
    await room()
    const from = offset()
    const params = { offset: from, limit: 100, timeout: HOLD_S, allowed_updates: ['message'] }
    const found = await ask('getUpdates', params, { timeoutMs: (HOLD_S + 10) * 1000 })
    const updates = Array.isArray(found) ? found : []
    const ids = updates.flatMap((update) => (isObject(update) && typeof update.update_id === 'number' ? [update.update_id] : []))
    if (ids.length > 0) take(updates, Math.max(...ids) + 1)
  }
}

type ReceiverOptions = {
  readonly host: ChannelHost
  readonly api: BotApi
  readonly outbox: Outbox
  readonly delivery: Delivery
  readonly ledger: Ledger
  readonly settings: TelegramSettings
  readonly signal: AbortSignal
}

const greeting =
  'Hello. Write to me, or send a photo, and I answer. /new begins a new conversation; /stop ends the answer that I am working on; /continue continues one that was interrupted; /status lists what does not work.'

/** Hands messages to the host: with their conversation, their commands, and the way back for the answer. */
function createReceiver({ host, api, outbox, delivery, ledger, settings, signal }: ReceiverOptions) {
  const { log } = host.setup
  /** The running work of each person in each place, and how to stop it. */
  const working = new Map<string, { readonly stop: () => void; readonly updateId: number }>()

  const say = (address: string, text: string) => delivery.deliver({ address, text })

  function runChatCommand(command: ChatCommand, message: TelegramMessage): void {
    const address = addressOf(message)
    if (command === 'start') return void say(address, greeting)
    if (command === 'new') {
      ledger.newTopic(ledger.origin(address))
      return void say(address, 'A new conversation begins.')
    }
    const found = working.get(keyOf(message))
    if (found) found.stop()
    else void say(address, 'I am not working on anything of yours here.')
  }

  /** Returns the text with what its photos show. The person can stop the turn that follows and the work before it. */
  async function complete(message: TelegramMessage, at: TurnPlace): Promise<string | undefined> {
    const preparing = new AbortController()
    const { conversation } = at
    const stop = () => {
      preparing.abort()
      conversation.cancel(`telegram ${message.person}`)
    }
    working.set(keyOf(message), { stop, updateId: message.updateId })
    const text = await completeText(message, {
      ...at,
      setup: host.setup,
      api,
      settings,
      signal: AbortSignal.any([signal, preparing.signal]),
    })
    return preparing.signal.aborted ? undefined : text
  }

  function settle(message: TelegramMessage): void {
    ledger.end(message.updateId)
    if (working.get(keyOf(message))?.updateId === message.updateId) working.delete(keyOf(message))
  }

  function receive(message: TelegramMessage): void {
    const { text, person, isGroup, command, updateId, messageId } = message
    const address = addressOf(message)
    const place = ledger.origin(address)
    const topic = ledger.topic(place)
    host.receive({
      ...{ channel: address, text, person, from: 'telegram', conversation: `telegram ${place}`, place },
      topic: topic?.toString(),
      command: command && (() => runChatCommand(command, message)),
      taken: () => ledger.begin(updateId),
      complete: (at) => complete(message, at),
      settled: () => settle(message),
      working: () => void outbox.typing(address),
      answer(words, about) {
        const delivered = delivery.deliver({ address, text: words, replyTo: isGroup ? String(messageId) : undefined, ...about })
        // The answer is on disk now: a later start has to deliver it, and nothing was interrupted.
        if (about?.closed === undefined) ledger.end(updateId)
        return delivered
      },
    })
  }

  return {
    receive,
    /** Continues with the open messages of an earlier start. */
    resume() {
      for (const { message, isBegun } of ledger.open()) {
        if (!isBegun) {
          receive(message)
          continue
        }
        log('warn', 'message interrupted', { from: 'telegram', channel: addressOf(message), messageId: message.messageId })
        void say(addressOf(message), interrupted(message)).then(() => ledger.end(message.updateId))
      }
    },
  }
}

/** Tells the person that the turn had begun: to run it again could repeat its effects. */
function interrupted({ text }: TelegramMessage): string {
  const beginning = flat(text).slice(0, 60).toWellFormed()
  const which = beginning === '' ? 'your last message' : `your message "${beginning}${text.length > 60 ? '…' : ''}"`
  return `[I was interrupted while I worked on ${which}; what I had begun may have happened. If you see no answer to it, send it again.]`
}

function keyOf(message: TelegramMessage): string {
  return `${addressOf(message)} ${message.person}`
}
