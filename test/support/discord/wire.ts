/** A wire to a loopback port that can go dead without either end being told. */

import type { Socket } from 'bun'

/** `frozen`: what is sent, goodbyes included, arrives nowhere. */
type Link = { frozen: boolean; far: Promise<Socket<Link>> }

export function startWire(port: number) {
  /** `cut`: new connections break at once. */
  const state = { cut: false }
  const open = new Set<Socket<Link>>()
  const server = Bun.listen<Link>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(near) {
        if (state.cut) near.terminate()
        else near.data = { frozen: false, far: reach(port, near) }
        if (!state.cut) open.add(near)
      },
      async data(near, bytes) {
        if (!near.data.frozen) (await near.data.far).write(bytes)
      },
      async close(near) {
        if (open.delete(near)) (await near.data.far).terminate()
      },
    },
  })
  return {
    port: server.port,
    state,
    /** The connections there are, not those to come. */
    freeze() {
      for (const near of open) near.data.frozen = true
    },
    /** The connections there are break, and so do those to come. */
    cut() {
      state.cut = true
      for (const near of open) near.terminate()
    },
    [Symbol.dispose]: () => server.stop(true),
  }
}

function reach(port: number, near: Socket<Link>): Promise<Socket<Link>> {
  return Bun.connect<Link>({
    hostname: '127.0.0.1',
    port,
    socket: {
      data: (_, bytes) => void (near.data.frozen || near.write(bytes)),
      close: () => void (near.data.frozen || near.end()),
    },
  })
}
