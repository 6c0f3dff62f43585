/** Wraps a raw socket as a pair of web streams with backpressure; each direction can end separately. */

import type { Socket, SocketHandler } from 'bun'

export type Tunnel = { readonly readable: ReadableStream<Uint8Array>; readonly writable: WritableStream<Uint8Array> }

type State = {
  readonly source: ReadableStreamDefaultController<Uint8Array>
  /** Resolves when the socket accepts more bytes from the waiting writer. */
  room?: PromiseWithResolvers<void>
  read: 'open' | 'closed'
  gone: boolean
}

const BUFFER_BYTES = 65_536

/** Handlers for Bun.listen and Bun.connect; `opened` gets each connection once it is established. */
export function streamed(opened: (connection: Tunnel) => void): Omit<SocketHandler<State>, 'connectError'> {
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
      data.gone = true
      data.room?.resolve()
      finish(data)
    },
    error({ data }, error) {
      if (data.read === 'open') data.source.error(error)
      data.read = 'closed'
    },
  }
}

function finish(state: State): void {
  if (state.read === 'open') state.source.close()
  state.read = 'closed'
}

function tunnel(socket: Socket<State>): Tunnel {
  const readable = new ReadableStream<Uint8Array>(
    {
      start(source) {
        socket.data = { source, read: 'open', gone: false }
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

/** Resolves when the system has accepted all bytes. @throws when the peer is gone */
async function send(socket: Socket<State>, bytes: Uint8Array): Promise<void> {
  const { data } = socket
  for (let sent = 0; sent < bytes.length; ) {
    if (data.gone) throw new Error('the other side is gone')
    data.room = Promise.withResolvers()
    const more = socket.write(bytes.subarray(sent))
    if (more < 0) throw new Error('the other side is gone')
    sent += more
    if (sent < bytes.length) await data.room.promise
  }
}
