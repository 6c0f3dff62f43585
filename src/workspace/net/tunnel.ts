/** Makes connections for the network access of a sandbox: a local listener, and a dialler that connects only to judged addresses. */

import type { Socket, SocketHandler } from 'bun'
import type { ByteConnection } from '../../sandbox/contract.ts'
import { explain, type JudgeAddress, type NetRefusal, pin, type Resolve, systemResolve } from './pin.ts'

export type TunnelOptions = {
  /** Called before any name is resolved. */
  readonly judgeHost: (to: Target) => NetRefusal | undefined
  readonly judgeAddress: JudgeAddress
  readonly resolve?: Resolve
  /** Covers the look-up and the connection, not the data afterwards; default 10,000. */
  readonly timeoutMs?: number
}

export type Target = { readonly host: string; readonly port: number }

export type Dialled = { readonly ok: true; readonly connection: ByteConnection } | NetRefusal

export type Tunnels = {
  /** Listens on a local socket; any process with access to its folder may connect. @throws when the path cannot be listened on */
  listen(path: string, accept: (connection: ByteConnection) => void): { stop(): void }
  /** Never rejects. */
  dial(target: Target): Promise<Dialled>
}

export function createTunnels(options: TunnelOptions): Tunnels {
  return {
    listen(path, accept) {
      const listener = Bun.listen({ unix: path, allowHalfOpen: true, socket: streamed(accept) })
      return { stop: () => listener.stop(true) }
    },
    dial: (target) => dial(options, target),
  }
}

async function dial(
  { judgeHost, judgeAddress, resolve = systemResolve, timeoutMs = 10_000 }: TunnelOptions,
  target: Target,
): Promise<Dialled> {
  const { host, port } = target
  const where = `${host}:${port}`
  const url = URL.parse(`http://${host.includes(':') ? `[${host}]` : host}:${port}/`)
  const refusal =
    url === null ? { ok: false as const, denied: 'url.invalid', message: `${JSON.stringify(where)} is not a host` } : judgeHost(target)
  if (url === null || refusal) return refusal ?? { ok: false, message: where }
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const pinned = await pin({ url, judgeAddress: (to) => judgeAddress({ ...to, port }), resolve, signal })
    return pinned.ok ? await reach(pinned.ips, port, signal) : pinned
  } catch (error) {
    return { ok: false, message: `${where}: ${signal.aborted ? `no connection within ${timeoutMs / 1000} s` : explain(error)}` }
  }
}

/** Connects to the first address that answers. @throws the error of the last address */
async function reach(ips: readonly string[], port: number, signal: AbortSignal): Promise<Dialled> {
  let trouble: unknown
  for (const ip of ips) {
    try {
      return { ok: true, connection: await connect(ip, port, signal) }
    } catch (error) {
      if (signal.aborted) throw error
      trouble = error
    }
  }
  throw trouble
}

async function connect(hostname: string, port: number, signal: AbortSignal): Promise<ByteConnection> {
  const { promise, resolve, reject } = Promise.withResolvers<ByteConnection>()
  const late = () => reject(signal.reason)
  signal.addEventListener('abort', late, { once: true })
  const handlers = streamed(resolve)
  const opening = Bun.connect({
    hostname,
    port,
    allowHalfOpen: true,
    socket: { ...handlers, connectError: (_socket, error) => reject(error) },
  })
  opening.catch(reject)
  try {
    return await promise
  } catch (error) {
    void opening.then((socket) => socket.terminate()).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', late)
  }
}

type SocketState = {
  readonly source: ReadableStreamDefaultController<Uint8Array>
  /** Resolves when the socket accepts more bytes from the waiting writer. */
  room?: PromiseWithResolvers<void>
  read: 'open' | 'closed'
  disconnected: boolean
}

const BUFFER_BYTES = 65_536

/** Handlers for Bun.listen and Bun.connect; `opened` gets each connection once it is established. */
export function streamed(opened: (connection: ByteConnection) => void): Omit<SocketHandler<SocketState>, 'connectError'> {
  return {
    binaryType: 'buffer',
    open: (socket) => opened(tunnel(socket)),
    data(socket, chunk) {
      const { data } = socket
      if (data.read === 'closed') return
      data.source.enqueue(new Uint8Array(chunk))
      if ((data.source.desiredSize ?? 0) <= 0) socket.pause()
    },
    drain: ({ data }) => data.room?.resolve(),
    end: ({ data }) => finish(data),
    close({ data }) {
      data.disconnected = true
      data.room?.resolve()
      finish(data)
    },
    error({ data }, error) {
      if (data.read === 'open') data.source.error(error)
      data.read = 'closed'
    },
  }
}

function finish(state: SocketState): void {
  if (state.read === 'open') state.source.close()
  state.read = 'closed'
}

/** Returns a raw socket as a pair of web streams with backpressure; each direction can end separately. */
function tunnel(socket: Socket<SocketState>): ByteConnection {
  const readable = new ReadableStream<Uint8Array>(
    {
      start(source) {
        socket.data = { source, read: 'open', disconnected: false }
      },
      pull: () => void socket.resume(),
      cancel() {
        socket.data.read = 'closed'
        socket.terminate()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES }),
  )
  const writable = new WritableStream<Uint8Array>({
    write: (bytes) => send(socket, bytes),
    close() {
      if (socket.data.read === 'closed') socket.end()
      else socket.shutdown()
    },
    abort: () => socket.terminate(),
  })
  return { readable, writable }
}

/** Resolves when the system has accepted all bytes. @throws when the peer has disconnected */
async function send(socket: Socket<SocketState>, bytes: Uint8Array): Promise<void> {
  const { data } = socket
  for (let sent = 0; sent < bytes.length; ) {
    if (data.disconnected) throw new Error('the other side has disconnected')
    data.room = Promise.withResolvers()
    const more = socket.write(bytes.subarray(sent))
    if (more < 0) throw new Error('the other side has disconnected')
    sent += more
    if (sent < bytes.length) await data.room.promise
  }
}
