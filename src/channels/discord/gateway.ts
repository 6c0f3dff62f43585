/**
 * Stays connected to Discord's gateway: it identifies, resumes, waits longer after each failure, and gives up only when Discord says so.
 */

import { type APIGatewayBotInfo, GatewayDispatchEvents, type GatewayMessageCreateDispatchData } from '@discordjs/core'
import { Encoding, type FetchingStrategyOptions } from '@discordjs/ws'
import { atEnd } from '../../kit/errors.ts'
import type { Log } from '../../runtime/port.ts'
import { FINAL_TIMES, type SendRefusal } from '../outbox/send-pieces.ts'
import { PORTAL, refusalOf } from './rest.ts'
import { openShard, type SessionStore, type ShardEnd, type ShardSettings } from './shard.ts'

export type GatewaySettings = Pick<ShardSettings, 'isGateway' | 'onDispatch'> & {
  readonly token: string
  readonly intents: number
  readonly gatewayInfo: () => Promise<APIGatewayBotInfo>
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly log: Log
  readonly signal: AbortSignal
  readonly trouble: (why: string) => void
}

/** `ok` when the signal stopped it. */
export type GatewayEnd = { readonly ok: true } | { readonly ok: false; readonly message: string }

/** @returns when `signal` aborts, or with a failure that no reconnect can repair. */
export async function stayConnected(settings: GatewaySettings): Promise<GatewayEnd> {
  const { signal, log } = settings
  const store: SessionStore = { session: null }
  const state: GatewayState = { failures: 0, finals: 0, info: undefined }
  while (!signal.aborted) {
    const found = await findGateway(settings, store, state)
    if (signal.aborted) break
    if (found.kind === 'final') return { ok: false, message: found.message }
    if (found.kind === 'wait') {
      log('warn', 'discord out of reach', { reason: found.message, waitMs: found.ms })
      if (state.failures >= PATIENCE || found.ms > 60_000) settings.trouble(found.message)
      await pause(settings, found.ms)
      continue
    }
    const ended = await connection(settings, store, found.info)
    if (signal.aborted) break
    const isFinal = ended.next === 'never'
    if (ended.wasReady || !isFinal) state.finals = 0
    if (isFinal && isRepeated(state)) return { ok: false, message: closingMessage({ ...ended, intents: settings.intents }) }
    const waitMs = settle({ ended, store, state, log })
    if (state.failures >= PATIENCE) settings.trouble(`the connection to the gateway fails (${ended.code ?? 'no code'}): ${ended.reason}`)
    await pause(settings, waitMs)
  }
  return { ok: true }
}

/** `failures` counts failed connections and gateway requests in a row, `finals` how many of the last ones Discord called final. */
type GatewayState = { failures: number; finals: number; info: APIGatewayBotInfo | undefined }

function isRepeated(state: GatewayState): boolean {
  state.finals += 1
  return state.finals >= FINAL_TIMES
}

type GatewayLookup =
  | { readonly kind: 'found'; readonly info: APIGatewayBotInfo }
  | { readonly kind: 'wait'; readonly ms: number; readonly message: string }
  | { readonly kind: 'final'; readonly message: string }

/**
 * Requests the gateway again before each identify: Discord limits identifies per day, and resets the token of a bot that ignores the limit.
 */
async function findGateway(settings: GatewaySettings, store: SessionStore, state: GatewayState): Promise<GatewayLookup> {
  if (store.session !== null && state.info !== undefined) return { kind: 'found', info: state.info }
  try {
    const info = await settings.gatewayInfo()
    const { remaining, reset_after } = info.session_start_limit ?? {}
    if (!settings.isGateway(info.url) || typeof remaining !== 'number')
      return afterRefusal(
        { kind: 'passing', message: `not a secure gateway address: ${JSON.stringify(info.url)}; the bot token is not sent there` },
        state,
      )
    state.info = info
    if (remaining > 0) return { kind: 'found', info }
    return { kind: 'wait', ms: Math.max(reset_after, pauseMs(0)), message: 'the daily connection limit of this bot is reached' }
  } catch (error) {
    return afterRefusal(refusalOf(error, 'gateway'), state)
  }
}

function afterRefusal(refusal: SendRefusal, state: GatewayState): GatewayLookup {
  const isFinal = refusal.kind === 'final' && refusal.status === 401
  if (!isFinal) state.finals = 0
  else if (isRepeated(state)) return refusal
  const ms = refusal.kind === 'wait' ? refusal.ms : pauseMs(state.failures)
  state.failures += 1
  return { kind: 'wait', ms, message: refusal.message }
}

async function connection(settings: GatewaySettings, store: SessionStore, info: APIGatewayBotInfo): Promise<ShardEnd> {
  const { isGateway, onDispatch, signal } = settings
  const shard = openShard({ options: optionsOf(settings, info), store, isGateway, onDispatch })
  signal.addEventListener('abort', shard.close, { once: true })
  using _end = atEnd(() => signal.removeEventListener('abort', shard.close))
  return await shard.ended
}

type EndedConnection = { readonly ended: ShardEnd; readonly store: SessionStore; readonly state: GatewayState; readonly log: Log }

/** @returns milliseconds until the next connection */
function settle({ ended, store, state, log }: EndedConnection): number {
  const { code, reason, wasReady } = ended
  if (wasReady) state.failures = 0
  const waitMs = reconnectsAtOnce(ended) ? 0 : pauseMs(state.failures)
  if (!wasReady) state.failures += 1
  const isLost = store.session !== null && !isWorthResuming(ended, state.failures)
  if (isLost) store.session = null
  log('warn', 'discord disconnected', { code, reason, waitMs, resumes: store.session !== null })
  if (isLost) log('warn', 'discord session lost', { consequence: 'messages written until it is connected again are not seen' })
  return waitMs
}

async function pause({ sleep, signal }: GatewaySettings, ms: number): Promise<void> {
  if (ms > 0) await sleep(ms, signal).catch(() => {})
}

function optionsOf({ token, intents }: GatewaySettings, gatewayInformation: APIGatewayBotInfo): FetchingStrategyOptions {
  return {
    token,
    intents,
    gatewayInformation,
    shardCount: 1,
    version: '10',
    encoding: Encoding.JSON,
    // Neither is worthwhile for one channel's text, and each would look for a native module.
    compression: null,
    useIdentifyCompression: false,
    identifyProperties: { os: process.platform, browser: 'braidclaw', device: 'braidclaw' },
    initialPresence: null,
    largeThreshold: null,
    // Bun's sockets have no timeout for the handshake; helloTimeout covers it.
    handshakeTimeout: null,
    helloTimeout: 20_000,
    readyTimeout: 15_000,
  }
}

/** @param failures connections in a row that never became ready. @returns milliseconds: 5, 10, 20, 40 and from then on 60 s */
function pauseMs(failures: number): number {
  return Math.min(60_000, 5_000 * 2 ** Math.min(failures, 10))
}

/**
 * True when the server asked for a reconnect, or stopped answering on a connection that had been good: it either keeps the session or has
 * lost it anyway.
 */
function reconnectsAtOnce({ next, code, wasAcked }: ShardEnd): boolean {
  return next === 'resume' && code === undefined && wasAcked
}

/** How many times in a row the server of a session may be unreachable: this machine may have slept, or the server may have ended. */
const PATIENCE = 3

/** Discord's code for "session timed out": Discord would refuse to resume. */
const TIMED_OUT = 4009

/** A session outlives the network: when no server answered, no server has ended the session. */
function isWorthResuming({ next, code, saidHello }: ShardEnd, failures: number): boolean {
  if (code === TIMED_OUT) return false
  if (!saidHello) return failures < PATIENCE
  return next === 'resume'
}

/** @param intents the requested bit mask. @returns what is wrong and what to do about it */
function closingMessage({ code, reason, intents }: { code: number | undefined; reason: string; intents: number }): string {
  const known = code === undefined ? undefined : messages(intents)[code]
  return known ?? `Discord ended the connection for good (${code ?? 'no code'}): ${reason || 'no reason given'}`
}

const messages = (intents: number): { readonly [code: number]: string } => ({
  4004: `Discord refuses the bot token (4004); copy it again from ${PORTAL}, page Bot (DISCORD_BOT_TOKEN)`,
  4010: 'Discord refuses the shard (4010 invalid shard); this is a bug in BraidClaw',
  4011: 'the bot is in more servers than one connection serves (4011 sharding required); use a bot of its own for this',
  4012: 'Discord no longer speaks version 10 of its gateway (4012); update this program',
  4013: `intents: ${intents} is not a set of intents that Discord knows (4013)`,
  4014:
    `intents: ${intents} contains one that this bot has not been granted (4014); turn on "Message Content Intent" at ${PORTAL}, page Bot, ` +
    'or ask for 512 only, and read only messages that mention the bot',
})

export type ListenerSettings = {
  readonly channelIds: readonly string[]
  readonly log: Log
  readonly onReady: (userId: string) => void
  readonly onConnected: () => void
  readonly onMessage: (message: DiscordMessage) => void
}

/** Translates gateway events into the three that matter here: the bot's identity, a resumed session, and messages from people. */
export function createListener({ channelIds, log, onReady, onConnected, onMessage }: ListenerSettings): ShardSettings['onDispatch'] {
  const self: { id?: string } = {}
  return (payload) => {
    if (payload.t === GatewayDispatchEvents.Ready) {
      const { id, username } = payload.d.user
      self.id = id
      log('info', 'discord connected', { bot: username, userId: id })
      onReady(id)
    }
    if (payload.t === GatewayDispatchEvents.Resumed) log('info', 'discord resumed')
    if (payload.t === GatewayDispatchEvents.Ready || payload.t === GatewayDispatchEvents.Resumed) onConnected()
    if (payload.t !== GatewayDispatchEvents.MessageCreate) return
    const selected = selectMessage(payload.d, { channelIds, selfId: self.id })
    if (selected.kind === 'message') onMessage(selected.message)
    if (selected.kind === 'no text')
      log('warn', 'discord message ignored', { messageId: selected.messageId, channel: selected.channel, reason: selected.why })
  }
}

/** Ids are Discord's, 17 to 20 digits. */
export type DiscordMessage = { readonly channel: string; readonly text: string; readonly authorId: string; readonly messageId: string }

type SelectedMessage =
  | { readonly kind: 'message'; readonly message: DiscordMessage }
  | { readonly kind: 'not for us' }
  | { readonly kind: 'no text'; readonly messageId: string; readonly channel: string; readonly why: string }

/** A message and a reply; Discord itself writes joins, pins, boosts and similar messages. */
const WRITTEN: ReadonlySet<number> = new Set([0, 19])

type MessageFilter = { readonly channelIds: readonly string[]; readonly selfId: string | undefined }

/** Selects the Discord messages for the agent: written by a person, in a configured channel, with text. */
function selectMessage(data: GatewayMessageCreateDispatchData, { channelIds, selfId }: MessageFilter): SelectedMessage {
  const { author, channel_id: channel, content, id: messageId } = data
  const isMachine = author.bot === true || author.system === true || data.webhook_id !== undefined || author.id === selfId
  if (!channelIds.includes(channel) || isMachine || !WRITTEN.has(data.type)) return { kind: 'not for us' }
  if (typeof content !== 'string' || content.trim() === '') return { kind: 'no text', messageId, channel, why: whyNoText(data) }
  return { kind: 'message', message: { channel, text: content, authorId: author.id, messageId } }
}

/** Without the intent Discord also empties the attachments, so a message without any content shows that the intent is missing. */
function whyNoText({ attachments, embeds, sticker_items, poll }: GatewayMessageCreateDispatchData): string {
  const hasOther = [attachments, embeds, sticker_items].some((list) => (list?.length ?? 0) > 0) || poll !== undefined
  if (hasOther) return 'attachments, stickers and polls are not supported'
  return 'Discord delivered it empty; turn on "Message Content Intent" at https://discord.com/developers/applications, page Bot'
}
