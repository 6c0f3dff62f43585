/** Runs one connection to Discord's gateway from opening to end: it uses the library's protocol but not its reconnects. */

import {
  type FetchingStrategyOptions,
  type IContextFetchingStrategy,
  type SessionInfo,
  WebSocketShard,
  type WebSocketShardDestroyOptions,
  WebSocketShardDestroyRecovery,
  WebSocketShardEvents,
  type WebSocketShardEventsMap,
} from '@discordjs/ws'

/** The session that the next connection resumes; it outlives the connections. */
export type SessionStore = { session: SessionInfo | null }

/** `saidHello`: the peer speaks the protocol. `wasReady`: identified or resumed. `wasAcked`: the peer acknowledged a heartbeat. */
type Signs = { readonly saidHello: boolean; readonly wasReady: boolean; readonly wasAcked: boolean }

/** `next` is what the library would do. `code` is set when the server closed the connection, or missed a deadline. */
export type ShardEnd = Signs & { readonly next: 'resume' | 'renew' | 'never'; readonly code: number | undefined; readonly reason: string }

export type ShardSettings = {
  readonly options: FetchingStrategyOptions
  readonly store: SessionStore
  /** Tells whether the token may be sent to a URL. */
  readonly isGateway: (url: string) => boolean
  readonly onDispatch: (payload: WebSocketShardEventsMap[WebSocketShardEvents.Dispatch][0]) => void
}

export type Shard = { readonly ended: Promise<ShardEnd>; close(): void }

/**
 * By default the library reconnects every half second for ever, waits without limit for the close frame of a dead peer, and reconnects even
 * when it is closed during connecting. So this code replaces its `destroy`, which every ending passes through, with one that only ends the
 * connection.
 */
export function openShard(settings: ShardSettings): Shard {
  const { promise: ended, resolve } = Promise.withResolvers<ShardEnd>()
  const shard = new WebSocketShard(contextOf(settings), 0)
  const seen = watch(shard)
  const closeGracefully = shard.destroy.bind(shard)
  const end = async (why: WebSocketShardDestroyOptions) => {
    closeGracefully({ code: codeOf(why), reason: why.reason }).catch(() => {})
    // During this tick the close frame is written, and whatever was just starting has started: a socket, the heartbeat interval.
    await Bun.sleep(0)
    terminateSocket(shard)
    const { trouble, ...signs } = seen
    resolve({ ...signs, next: nextOf(why), code: why.code, reason: why.reason ?? trouble })
  }
  // The caller must not wait for it: the library would start heartbeats after the end that a missed heartbeat caused.
  shard.destroy = async (why = {}) => void end(why)
  endOnMalformedFrames(shard)
  shard.on(WebSocketShardEvents.Dispatch, settings.onDispatch)
  // Settles with the first READY or an error; other handlers report both.
  shard.connect().catch(() => {})
  return { ended, close: () => void shard.destroy({ reason: 'closed' }) }
}

function contextOf({ options, store, isGateway }: ShardSettings): IContextFetchingStrategy {
  return {
    options,
    retrieveSessionInfo: () => store.session,
    updateSessionInfo(_, info) {
      // The owner of the store decides whether a session is worth keeping.
      if (info === null) return
      store.session = isGateway(info.resumeURL) ? info : { ...info, resumeURL: options.gatewayInformation.url }
    },
    // The pauses between connections are longer than the pause that Discord requires between two identifies.
    waitForIdentify: async () => {},
  }
}

function watch(shard: WebSocketShard) {
  const seen = { saidHello: false, wasReady: false, wasAcked: false, trouble: '' }
  shard.on(WebSocketShardEvents.Hello, () => {
    seen.saidHello = true
  })
  const onReady = () => {
    seen.wasReady = true
  }
  shard.on(WebSocketShardEvents.Ready, onReady)
  shard.on(WebSocketShardEvents.Resumed, onReady)
  shard.on(WebSocketShardEvents.HeartbeatComplete, () => {
    seen.wasAcked = true
  })
  // The event can come without an error here, whatever the types say.
  const onError = (error?: Error) => {
    seen.trouble = error?.message ?? 'the connection failed'
  }
  shard.on(WebSocketShardEvents.Error, onError)
  shard.on(WebSocketShardEvents.SocketError, onError)
  return seen
}

/** Ends the connection on a malformed frame, because the library's or a listener's exception would otherwise end this process. */
function endOnMalformedFrames(shard: WebSocketShard): void {
  const read: unknown = Reflect.get(shard, 'onMessage')
  if (typeof read !== 'function') throw new Error('@discordjs/ws no longer reads its frames in "onMessage"; see refuseNonsense in shard.ts')
  const guarded = async (...frame: unknown[]) => {
    try {
      await Reflect.apply(read, shard, frame)
    } catch (error) {
      await shard.destroy({ reason: `a frame that cannot be read: ${error}`, recover: WebSocketShardDestroyRecovery.Reconnect })
    }
  }
  Reflect.set(shard, 'onMessage', guarded)
}

/**
 * Closes the socket: the library considers itself closed once it has sent its close frame, and a peer that does not answer would keep the
 * connection and this process alive.
 */
function terminateSocket(shard: WebSocketShard): void {
  const socket: unknown = Reflect.get(shard, 'connection')
  if (socket instanceof WebSocket) socket.terminate()
  clearInterval(Reflect.get(shard, 'heartbeatInterval') ?? undefined)
}

/** Code 1000 ends the session for good. */
function codeOf({ code, recover }: WebSocketShardDestroyOptions): number {
  return code ?? (recover === WebSocketShardDestroyRecovery.Resume ? 4200 : 1000)
}

function nextOf({ recover }: WebSocketShardDestroyOptions): ShardEnd['next'] {
  if (recover === undefined) return 'never'
  return recover === WebSocketShardDestroyRecovery.Resume ? 'resume' : 'renew'
}
