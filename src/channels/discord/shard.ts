/** One connection to Discord's gateway, from its opening to its end: the library's protocol without the library's way of coming back. */

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

/** Outlives the connections: what the next one resumes. */
export type SessionStore = { session: SessionInfo | null }

/** `saidHello`: somebody who speaks the protocol was there. `wasReady`: identified or resumed. `wasAcked`: it outlived a heartbeat. */
type Signs = { readonly saidHello: boolean; readonly wasReady: boolean; readonly wasAcked: boolean }

/** `next` is what the library would do. There is a `code` when the server closed the connection, or did not say what it had to in time. */
export type Ended = Signs & {
  readonly next: 'resume' | 'renew' | 'never'
  readonly code: number | undefined
  readonly reason: string
}

export type ShardSettings = {
  readonly options: FetchingStrategyOptions
  readonly store: SessionStore
  /** Whether a URL may be told the token. */
  readonly isGateway: (url: string) => boolean
  readonly onDispatch: (payload: WebSocketShardEventsMap[WebSocketShardEvents.Dispatch][0]) => void
}

export type Shard = { readonly ended: Promise<Ended>; close(): void }

/**
 * Left alone the library comes back on its own every half second for ever, waits without end for the goodbye of a peer that is gone, and
 * comes back even when it is closed while still connecting. So its `destroy`, through which every end of a connection goes, only ever ends.
 */
export function openShard(settings: ShardSettings): Shard {
  const { promise: ended, resolve } = Promise.withResolvers<Ended>()
  const shard = new WebSocketShard(contextOf(settings), 0)
  const seen = watch(shard)
  const goodbye = shard.destroy.bind(shard)
  const end = async (why: WebSocketShardDestroyOptions) => {
    goodbye({ code: codeOf(why), reason: why.reason }).catch(() => {})
    // In the meantime the goodbye is written, and what was just about to begin has begun: a socket, the interval of the heartbeat.
    await Bun.sleep(0)
    hangUp(shard)
    const { trouble, ...signs } = seen
    resolve({ ...signs, next: nextOf(why), code: why.code, reason: why.reason ?? trouble })
  }
  // Nobody may wait for it: the library would start to beat after the end that a missed heartbeat brought about.
  shard.destroy = async (why = {}) => void end(why)
  refuseNonsense(shard)
  shard.on(WebSocketShardEvents.Dispatch, settings.onDispatch)
  // Settles with the first READY or an error; both are heard elsewhere.
  shard.connect().catch(() => {})
  return { ended, close: () => void shard.destroy({ reason: 'closed' }) }
}

function contextOf({ options, store, isGateway }: ShardSettings): IContextFetchingStrategy {
  return {
    options,
    retrieveSessionInfo: () => store.session,
    updateSessionInfo(_, info) {
      // Whether a session is worth keeping is for the owner of the store to say.
      if (info === null) return
      store.session = isGateway(info.resumeURL) ? info : { ...info, resumeURL: options.gatewayInformation.url }
    },
    // The pauses between connections are longer than what Discord asks for between two of these.
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
  // An event without an error is possible here, whatever the types say.
  const onError = (error?: Error) => {
    seen.trouble = error?.message ?? 'the connection failed'
  }
  shard.on(WebSocketShardEvents.Error, onError)
  shard.on(WebSocketShardEvents.SocketError, onError)
  return seen
}

/** A frame in which the library, or whoever listens, does not find what must be there would end this process: it ends the connection. */
function refuseNonsense(shard: WebSocketShard): void {
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

/** The library takes itself for closed once it has said goodbye. A peer that does not answer that would keep the connection, and this process. */
function hangUp(shard: WebSocketShard): void {
  const socket: unknown = Reflect.get(shard, 'connection')
  if (socket instanceof WebSocket) socket.terminate()
  clearInterval(Reflect.get(shard, 'heartbeatInterval') ?? undefined)
}

/** 1000 ends the session for good. */
function codeOf({ code, recover }: WebSocketShardDestroyOptions): number {
  return code ?? (recover === WebSocketShardDestroyRecovery.Resume ? 4200 : 1000)
}

function nextOf({ recover }: WebSocketShardDestroyOptions): Ended['next'] {
  if (recover === undefined) return 'never'
  return recover === WebSocketShardDestroyRecovery.Resume ? 'resume' : 'renew'
}
