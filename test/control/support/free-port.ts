/** Finds a port for a server that a test stops and starts again at the same address. */

import { createServer } from 'node:net'

/**
 * Returns a port that nobody listens on, below those that Linux gives to connections: while the server is away, no client and no other server
 * gets it by chance, not even a client that tries to reach it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
