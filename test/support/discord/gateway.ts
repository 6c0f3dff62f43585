/** Simulates Discord's gateway, version 10, on loopback: sessions with replay, heartbeats, and every kind of disconnect. */

import type { ServerWebSocket } from 'bun'

/** `isDropped`: the fake ended the connection. */
export type Link = { readonly version: string | null; readonly encoding: string | null; session?: Session; isDropped?: boolean }
type Socket = ServerWebSocket<Link>
type Dispatch = { readonly op: 0; readonly t: string; readonly s: number; readonly d: object }
type Session = { readonly id: string; readonly intents: number; readonly events: Dispatch[]; sequence: number; socket: Socket | undefined }

export type Identify = { token: string; intents: number; properties: { os: string; browser: string; device: string }; shard?: number[] }
export type Resume = { token: string; session_id: string; seq: number }

export type GatewaySettings = {
  readonly token: string
  readonly heartbeatMs: number
  /** Intents that the bot does not have, as a bit mask. */
  readonly disallowed: number
  readonly bot: { readonly id: string; readonly username: string; readonly bot: true }
  /** The URL for a resume; evaluated for every session. */
  readonly url: () => string
}

const GUILD_MESSAGES = 1 << 9
const MESSAGE_CONTENT = 1 << 15
const KNOWN_INTENTS = 2 ** 26 - 1

export function createGateway(settings: GatewaySettings) {
  const sessions = new Map<string, Session>()
  const sockets = new Set<Socket>()
  const seen = {
    connections: 0,
    identifies: [] as Identify[],
    resumes: [] as Resume[],
    heartbeats: [] as unknown[],
    closes: [] as number[],
    /** The number of open connections. */
    open: () => sockets.size,
  }
  /** The next failures: heartbeats without an answer, and the treatment of the next connections and sessions. */
  const trouble = { mute: false, refuse: [] as number[], refuseIdentify: 0, resumeUrl: undefined as string | undefined }

  function open(socket: Socket): void {
    sockets.add(socket)
    seen.connections += 1
    const { version, encoding } = socket.data
    const code = trouble.refuse.shift() ?? (version === '10' && encoding === 'json' ? undefined : 4012)
    if (code !== undefined) socket.close(code, reasons[code])
    else send(socket, { op: 10, d: { heartbeat_interval: settings.heartbeatMs, _trace: ['["fake"]'] }, s: null, t: null })
  }

  function message(socket: Socket, text: string | Buffer): void {
    const code = answer(socket, String(text))
    if (code !== undefined) socket.close(code, reasons[code])
  }

  /** @returns the code to close with when the client made an error */
  function answer(socket: Socket, text: string): number | undefined {
    const payload = parsed(text)
    if (payload === undefined) return 4002
    if (payload.op === 1) return heartbeat(socket, payload.d)
    if (payload.op === 2) return identify(socket, Object(payload.d))
    if (payload.op === 6) return resume(socket, Object(payload.d))
    if (![3, 4, 8].includes(payload.op)) return 4001
    return socket.data.session === undefined ? 4003 : undefined
  }

  function heartbeat(socket: Socket, d: unknown): undefined {
    seen.heartbeats.push(d)
    if (!trouble.mute) send(socket, { op: 11, d: null, s: null, t: null })
  }

  function identify(socket: Socket, d: Identify): number | undefined {
    seen.identifies.push(d)
    if (socket.data.session !== undefined) return 4005
    if (d.token !== settings.token) return 4004
    if (!Number.isInteger(d.intents) || d.intents < 0 || d.intents > KNOWN_INTENTS) return 4013
    if ((d.intents & settings.disallowed) !== 0) return 4014
    trouble.refuseIdentify -= 1
    if (trouble.refuseIdentify >= 0) send(socket, { op: 9, d: false, s: null, t: null })
    else begin(socket, d)
  }

  function begin(socket: Socket, { intents, shard }: Identify): void {
    const session: Session = { id: crypto.randomUUID().replaceAll('-', ''), intents, events: [], sequence: 0, socket }
    sessions.set(session.id, session)
    socket.data.session = session
    tell(session, 'READY', {
      v: 10,
      user: settings.bot,
      guilds: [{ id: '1100000000000000001', unavailable: true }],
      session_id: session.id,
      resume_gateway_url: trouble.resumeUrl ?? settings.url(),
      shard,
      application: { id: settings.bot.id, flags: 0 },
    })
  }

  function resume(socket: Socket, d: Resume): number | undefined {
    seen.resumes.push(d)
    if (d.token !== settings.token) return 4004
    const session = sessions.get(d.session_id)
    if (session !== undefined && d.seq > session.sequence) return 4007
    if (session === undefined) send(socket, { op: 9, d: false, s: null, t: null })
    else goOn(socket, session, d.seq)
  }

  function goOn(socket: Socket, session: Session, after: number): void {
    session.socket = socket
    socket.data.session = session
    for (const event of session.events.filter((one) => one.s > after)) send(socket, event)
    tell(session, 'RESUMED', { _trace: ['["fake"]'] })
  }

  function close(socket: Socket, code: number): void {
    sockets.delete(socket)
    seen.closes.push(code)
    const { session } = socket.data
    if (session?.socket !== socket) return
    session.socket = undefined
    // A client that closes normally loses its session.
    if (!socket.data.isDropped && (code === 1000 || code === 1001)) sessions.delete(session.id)
  }

  function tell(session: Session, t: string, d: object): void {
    session.sequence += 1
    const event: Dispatch = { op: 0, t, s: session.sequence, d }
    session.events.push(event)
    if (session.socket !== undefined) send(session.socket, event)
  }

  /** Sends to every session that listens, connected or not: a resume delivers what was missed. */
  function dispatch(t: string, d: object): void {
    for (const session of sessions.values()) {
      if ((session.intents & GUILD_MESSAGES) === 0) continue
      const hasContent = (session.intents & MESSAGE_CONTENT) !== 0
      tell(session, t, hasContent ? d : { ...d, content: '', attachments: [], embeds: [], components: [] })
    }
  }

  return {
    websocket: { open, message, close, idleTimeout: 0 },
    dispatch,
    seen,
    trouble,
    /** Sends to every connection: op 1 asks for a heartbeat now, op 7 asks for a reconnect. */
    ask(op: 1 | 7): void {
      for (const socket of sockets) send(socket, { op, d: null, s: null, t: null })
    },
    invalidate(resumable: boolean): void {
      if (!resumable) sessions.clear()
      for (const socket of sockets) send(socket, { op: 9, d: resumable, s: null, t: null })
    },
    /** Closes every connection with this code, or breaks it without a close frame. */
    drop(code?: number): void {
      for (const socket of sockets) {
        socket.data.isDropped = true
        code === undefined ? socket.terminate() : socket.close(code)
      }
    },
    /** Deletes all sessions: a client that tries to resume has to begin anew. */
    forget: () => sessions.clear(),
    /** Sends any text, to test how the client handles it. */
    babble(text: string): void {
      for (const socket of sockets) socket.send(text)
    },
  }
}

const reasons: { readonly [code: number]: string } = {
  4001: 'Unknown opcode.',
  4002: 'Error while decoding payload.',
  4003: 'Not authenticated.',
  4004: 'Authentication failed.',
  4005: 'Already authenticated.',
  4007: 'Invalid seq.',
  4012: 'Invalid API version.',
  4013: 'Invalid intent(s).',
  4014: 'Disallowed intent(s).',
}

function send(socket: Socket, payload: object): void {
  socket.send(JSON.stringify(payload))
}

function parsed(text: string): { op: number; d: unknown } | undefined {
  try {
    const payload: unknown = JSON.parse(text)
    if (typeof payload !== 'object' || payload === null || !('op' in payload) || typeof payload.op !== 'number') return undefined
    return { op: payload.op, d: 'd' in payload ? payload.d : undefined }
  } catch {
    return undefined
  }
}
