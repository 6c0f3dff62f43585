/** Forwards to a loopback port over connections that can go dead without either end noticing. */

import type { Socket } from 'bun'

/** `frozen`: sent data, close frames included, does not arrive. */
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
    /** Freezes the present connections, not later ones. */
    freeze() {
      for (const near of open) near.data.frozen = true
    },
    /** Breaks the present connections and all later ones. */
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
    socket: { data: (_, bytes) => void (near.data.frozen || near.write(bytes)), close: () => void (near.data.frozen || near.end()) },
  })
}
