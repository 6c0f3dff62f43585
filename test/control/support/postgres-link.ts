/** A link between a daemon and PostgreSQL that a test cuts: what is sent then vanishes, in both directions, and nobody is told. */

import type { Socket } from 'bun'

export type PostgresLink = Disposable & {
  /** The URL of the same database through the link. */
  readonly url: string
  cut(): void
  /** Lets new connections through; those from before stay dead. */
  mend(): void
}

type End = { peer?: Socket<End>; waiting: Uint8Array[]; isDead: boolean }

export function linkTo(url: string): PostgresLink {
  const { hostname, port } = new URL(url)
  const through = new URL(url)
  const ends = new Set<End>()
  const state = { isCut: false }

  const forward = ({ data: own }: Socket<End>, bytes: Uint8Array) => {
    if (own.isDead || state.isCut) return
    if (own.peer) own.peer.write(bytes)
    else own.waiting.push(Uint8Array.from(bytes))
  }
  const close = ({ data: own }: Socket<End>) => {
    ends.delete(own)
    if (!own.isDead && !state.isCut) own.peer?.end()
  }

  async function open(near: Socket<End>): Promise<void> {
    const data: End = { peer: near, waiting: [], isDead: false }
    const far = await Bun.connect<End>({ ...{ hostname, port: Number(port), data }, socket: { data: forward, close } })
    ends.add(data)
    near.data.peer = far
    for (const bytes of near.data.waiting.splice(0)) far.write(bytes)
  }

  const listener = Bun.listen<End>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(near) {
        near.data = { waiting: [], isDead: state.isCut }
        ends.add(near.data)
        if (!state.isCut) void open(near).catch(() => near.end())
      },
      data: forward,
      close,
    },
  })
  through.port = String(listener.port)
  return {
    url: through.href,
    cut() {
      state.isCut = true
      for (const end of ends) end.isDead = true
    },
    mend() {
      state.isCut = false
    },
    [Symbol.dispose]: () => listener.stop(true),
  }
}
