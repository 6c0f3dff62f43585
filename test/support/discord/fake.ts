/** Simulates Discord on loopback: its gateway and its REST API as one server whose state tests can read and whose failures they control. */

import { createGateway, type Link } from './gateway.ts'
import { createRest, type RestSettings } from './rest.ts'

export const TOKEN = 'MTEwMDAwMDAwMDAwMDAwMDAwMQ.GfAkE1.not-a-secret_but-shaped-like-one'
export const CHANNEL = '1200000000000000001'
export const OTHER_CHANNEL = '1200000000000000002'
export const CLOSED_CHANNEL = '1200000000000000003'
export const BOT = { id: '1300000000000000001', username: 'braid', bot: true } as const

/** Who writes when a test names nobody. */
export const ADA = '1500000000000000001'

export type FakeSettings = { readonly heartbeatMs?: number; readonly disallowed?: number; readonly bucket?: RestSettings['bucket'] }

export type Said = {
  readonly content?: string
  readonly channel?: string
  readonly author?: { readonly id: string; readonly username?: string; readonly bot?: boolean }
  /** Any other field of a message: `webhook_id`, `type`, `attachments`, … */
  readonly rest?: object
}

export type FakeDiscord = ReturnType<typeof startDiscord>

/** The port answers until `stop`; `using` stops it too. */
export function startDiscord({ heartbeatMs = 41_250, disallowed = 0, bucket = { limit: 1000, windowMs: 5000 } }: FakeSettings = {}) {
  const ids = { next: 1_400_000_000_000_000_000n }
  const at = { gatewayPort: 0 }
  const nextId = () => String(ids.next++)
  const url = () => `ws://127.0.0.1:${at.gatewayPort}`
  const gateway = createGateway({ token: TOKEN, heartbeatMs, disallowed, bot: BOT, url })
  const rest = createRest({
    token: TOKEN,
    gatewayUrl: url,
    channels: [CHANNEL, OTHER_CHANNEL],
    closed: [CLOSED_CHANNEL],
    bucket,
    nextId,
    accepted: ({ id, channel, content }) => gateway.dispatch('MESSAGE_CREATE', created({ content, channel, author: BOT }, id)),
  })
  const server = Bun.serve<Link>({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    websocket: gateway.websocket,
    fetch(request, self) {
      const { searchParams } = new URL(request.url)
      const data: Link = { version: searchParams.get('v'), encoding: searchParams.get('encoding') }
      return self.upgrade(request, { data }) ? undefined : rest.handle(request)
    },
  })
  at.gatewayPort = server.port ?? 0
  const stop = () => void server.stop(true)
  return {
    /** The address that a client uses in place of https://discord.com/api. */
    api: `http://127.0.0.1:${server.port}/api`,
    port: at.gatewayPort,
    gateway,
    rest,
    /** Directs later gateway connections to this port. */
    moveGateway(port: number): void {
      at.gatewayPort = port
    },
    /** Posts a message as a user. @returns the id of the message */
    say(said: Said | string): string {
      const id = nextId()
      gateway.dispatch('MESSAGE_CREATE', created(typeof said === 'string' ? { content: said } : said, id))
      return id
    },
    stop,
    [Symbol.dispose]: stop,
  }
}

function created({ content = '', channel = CHANNEL, author, rest = {} }: Said, id: string): object {
  return {
    id,
    type: 0,
    content,
    channel_id: channel,
    guild_id: '1100000000000000001',
    author: { username: 'ada', discriminator: '0', ...(author ?? { id: ADA }) },
    timestamp: new Date(0).toISOString(),
    edited_timestamp: null,
    tts: false,
    mention_everyone: false,
    mentions: [],
    mention_roles: [],
    attachments: [],
    embeds: [],
    pinned: false,
    ...rest,
  }
}
