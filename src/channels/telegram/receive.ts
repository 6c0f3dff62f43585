/** Hands messages of Telegram to the host: with their conversation, their commands, and the way back for the answer. */

import { flat } from '../../kit/text.ts'
import type { ChannelHost, TurnPlace } from '../inbox/channel-api.ts'
import type { Delivery } from '../outbox/delivery.ts'
import { addressOf, type BotApi, type Outbox } from './bot-api.ts'
import { completeText } from './complete-text.ts'
import type { ChatCommand, TelegramMessage } from './inbound.ts'
import type { Ledger } from './ledger.ts'
import type { TelegramSettings } from './settings.ts'

export type ReceiverOptions = {
  readonly host: ChannelHost
  readonly api: BotApi
  readonly outbox: Outbox
  readonly delivery: Delivery
  readonly ledger: Ledger
  readonly settings: TelegramSettings
  readonly signal: AbortSignal
}

export type Receiver = {
  receive(message: TelegramMessage): void
  /** Continues with the open messages of an earlier start. */
  resume(): void
}

const greeting =
  'Hello. Write to me, or send a photo, and I answer. /new begins a new conversation; /stop ends the answer that I am working on; /continue continues one that was interrupted; /status lists what does not work.'

export function createReceiver({ host, api, outbox, delivery, ledger, settings, signal }: ReceiverOptions): Receiver {
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
