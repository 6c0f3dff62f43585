/** Connects Telegram as one of the channels when the configuration enables it. */

import { join } from 'node:path'
import type { Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { visionProblem } from '../../host/setup/vision-provider.ts'
import { isObject } from '../../kit/json.ts'
import { pause } from '../../service/sleep.ts'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { createAddresses } from '../inbox/addresses.ts'
import type { Channel, ChannelHost } from '../inbox/channel-api.ts'
import { createBotApi } from './bot-api.ts'
import { hear, joinAlbums, type Self, type TelegramMessage } from './inbound.ts'
import { openLedger } from './ledger.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { createPatience, readUpdates } from './poll.ts'
import { createReceiver } from './receive.ts'
import type { TelegramSettings } from './settings.ts'

const TELEGRAM_API = 'https://api.telegram.org'

/** Telegram keeps what is not taken for a day, so no more than this waits here. */
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
  const state: { outbox?: Outbox } = {}
  const addresses = createAddresses()

  return {
    name: 'telegram',
    async start(host, signal) {
      const outbox = createOutbox({ api, sleep: pause, log, signal })
      state.outbox = outbox
      // What is not taken before the stop is taken by the next start.
      const hearing = AbortSignal.any([signal, host.stopping])
      const ask = createPatience({ api, sleep: pause, log, signal: hearing })
      const self = selfIn(await ask('getMe', {}))
      if (self) {
        const ledger = openLedger(join(context.home, 'telegram', `bot-${self.id}.json`), log)
        const receiver = createReceiver({ host, api, outbox, ledger, addresses, settings, signal })
        log('info', 'channel started', { channel: 'telegram', bot: self.username })
        receiver.resume()
        await readUpdates({
          ask,
          signal: hearing,
          offset: ledger.offset,
          take: (updates, next) => ledger.take(next, joinAlbums(updates.flatMap((update) => heard(update, self, host))), receiver.receive),
          async room() {
            while (ledger.open().length >= MOST_OPEN && !hearing.aborted) await pause(200, hearing)
          },
        })
      }
      // Until then answers of turns that are under way are sent.
      await aborted(signal)
    },
    async send(conversationId, text) {
      const sent = (await state.outbox?.send(addresses.of(conversationId), text)) ?? { ok: false, message: 'Telegram is not connected' }
      if (!sent.ok) throw new Error(sent.message)
    },
    supportsDraftUpdates: () => false,
  }
}

function tokenOf({ context, redactor }: Setup, { tokenEnv }: TelegramSettings): string {
  const token = context.env[tokenEnv] ?? ''
  if (token !== '') redactor.register(token, tokenEnv)
  if (token === '') throw new FailureError('error', `${tokenEnv}: is empty; copy the token that @BotFather gave you for the bot`)
  if (!/^\d{1,20}:[\w-]{10,100}$/.test(token))
    throw new FailureError('error', `${tokenEnv}: is no token of a bot, which is digits, ":" and letters; copy it anew from @BotFather`)
  return token
}

function selfIn(me: unknown): Self | undefined {
  if (!isObject(me) || typeof me.id !== 'number') return undefined
  return { id: me.id, username: typeof me.username === 'string' ? me.username : '' }
}

function heard(update: unknown, self: Self, { setup }: ChannelHost): TelegramMessage[] {
  const found = hear(update, self)
  if (found.kind === 'no text')
    setup.log('warn', 'telegram message ignored', { chat: found.chat, messageId: found.messageId, reason: found.why })
  return found.kind === 'message' ? [found.message] : []
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
}
