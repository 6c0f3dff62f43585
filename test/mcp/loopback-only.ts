/** Preloaded into a server that would listen on every interface: it listens on loopback, at a free port that it prints. */

import { Server } from 'node:http'

const { listen } = Server.prototype as { listen(...args: unknown[]): Server }
Server.prototype.listen = function (this: Server, ...[, ...rest]: unknown[]) {
  this.once('listening', () => console.error(`loopback ${JSON.stringify(this.address())}`))
  return listen.call(this, { host: '127.0.0.1', port: 0 }, ...rest.filter((one) => typeof one === 'function'))
} as never
