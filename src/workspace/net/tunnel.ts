/** Makes connections for the network access of a sandbox: a local listener, and a dialler that connects only to judged addresses. */

import type { JudgeAddress, Refusal, Resolve } from './judge.ts'
import { pin, systemResolve } from './pin.ts'
import { streamed, type Tunnel } from './stream.ts'
import { explain } from './trouble.ts'

export type TunnelOptions = {
  /** Called before any name is resolved. */
  readonly judgeHost: (to: Target) => Refusal | undefined
  readonly judgeAddress: JudgeAddress
  readonly resolve?: Resolve
  /** Covers the look-up and the connection, not the data afterwards; default 10,000. */
  readonly timeoutMs?: number
}

export type Target = { readonly host: string; readonly port: number }

export type Dialled = { readonly ok: true; readonly connection: Tunnel } | Refusal

export type Tunnels = {
  /** Listens on a local socket; any process with access to its folder may connect. @throws when the path cannot be listened on */
  listen(path: string, accept: (connection: Tunnel) => void): { stop(): void }
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
    url === null ? { ok: false as const, denied: 'url.invalid', message: `${JSON.stringify(where)} is no host` } : judgeHost(target)
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

async function connect(hostname: string, port: number, signal: AbortSignal): Promise<Tunnel> {
  const { promise, resolve, reject } = Promise.withResolvers<Tunnel>()
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
