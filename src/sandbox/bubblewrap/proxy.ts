/** Serves an HTTP proxy to the inside of a sandbox: CONNECT and plain requests, to listed hosts only, with names resolved outside. */

import { atEnd } from '../../kit/errors.ts'
import type { Log } from '../../runtime/port.ts'
import type { ByteConnection, Network } from '../contract.ts'

type Proxy = {
  readonly allowedDomains: readonly string[]
  /** Ports besides 80 and 443. */
  readonly allowedPorts?: readonly number[]
  readonly dial: Network['dial']
  readonly log: Log
}

/** `body` says how many bytes follow the head; 'all' means a tunnel, which passes every byte. */
type Request = { readonly host: string; readonly port: number; readonly head: string; readonly body: number | 'all' }

const HEAD_BYTES = 16_384
const HEAD_MS = 10_000
const CONNECTIONS = 128
const LINGER_MS = 60_000
const PORTS = [80, 443]

/** Matches the exact host, or `*.suffix` at a label boundary; ignores case and a final dot. */
export function isListed(host: string, domains: readonly string[]): boolean {
  const name = plain(host)
  return domains.map(plain).some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
}

function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** Serves one request per connection and refuses every request that it cannot parse exactly. Never throws into the listener. */
export function createProxy(proxy: Proxy): (connection: ByteConnection) => void {
  let open = 0
  const each = async (connection: ByteConnection) => {
    try {
      if (++open > CONNECTIONS)
        await refuse({ proxy, connection, status: '503 Service Unavailable', why: `more than ${CONNECTIONS} connections` })
      else await serve({ proxy, connection })
    } catch (error) {
      proxy.log('debug', 'sandbox proxy', { error: String(error) })
    } finally {
      open -= 1
      await Promise.allSettled([connection.readable.cancel(), connection.writable.abort()])
    }
  }
  return (connection) => void each(connection)
}

async function serve({ proxy, connection }: { readonly proxy: Proxy; readonly connection: ByteConnection }): Promise<void> {
  const reader = connection.readable.getReader()
  const late = setTimeout(() => void reader.cancel().catch(() => {}), HEAD_MS)
  const opening = await readHead(reader)
  clearTimeout(late)
  reader.releaseLock()
  const request = opening && parse(opening.head)
  const no = (status: string, why: string, to?: object) => refuse({ proxy, connection, status, why, to })
  if (opening === undefined || request === undefined)
    return await no('400 Bad Request', 'the proxy takes CONNECT host:port or GET http://host/path, with a plain Content-Length or no body')
  const { host, port } = request
  const ports = [...PORTS, ...(proxy.allowedPorts ?? [])]
  if (!isListed(host, proxy.allowedDomains))
    return await no('403 Forbidden', `${host}:${port} is not one of the hosts that this command was given`, { host, port })
  if (!ports.includes(port))
    return await no('403 Forbidden', `${host}:${port}: only the ports ${ports.join(', ')} are allowed`, { host, port })
  const dialled = await proxy.dial({ host: plain(host), port })
  if (!dialled.ok) return await no('502 Bad Gateway', dialled.message, { host, port })
  proxy.log('debug', 'sandbox network', { host, port })
  await join({ inside: connection, outside: dialled.connection, request, rest: opening.rest })
}

type ByteReader = { read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array }> }
type RequestHead = { readonly head: string; readonly rest: Uint8Array }

async function readHead(reader: ByteReader): Promise<RequestHead | undefined> {
  let bytes = Buffer.alloc(0)
  while (bytes.length < HEAD_BYTES) {
    const { value } = await reader.read()
    if (value === undefined) return undefined
    bytes = Buffer.concat([bytes, value])
    const end = bytes.indexOf('\r\n\r\n')
    if (end >= 0) return { head: bytes.subarray(0, end).toString('latin1'), rest: bytes.subarray(end + 4) }
  }
}

/** Removes the connection headers of a plain request and asks the server to close after one response. */
function parse(head: string): Request | undefined {
  const [line = '', ...headers] = head.split('\r\n')
  if (headers.some((header) => !/^[!#$%&'*+.^_`|~\w-]+:[^\r\n\0]*$/.test(header))) return undefined
  const connect = /^CONNECT ([a-z\d._-]+):(\d{1,5}) HTTP\/1\.[01]$/i.exec(line)
  if (connect) return { host: connect[1] ?? '', port: Number(connect[2]), head: '', body: 'all' }
  const [, method, host = '', digits, path = ''] =
    /^([A-Z]+) http:\/\/([a-z\d._-]+)(?::(\d{1,5}))?(\/[!-~]*)? HTTP\/1\.[01]$/i.exec(line) ?? []
  const body = bodyOf(headers)
  if (method === undefined || body === undefined) return undefined
  const passed = headers.filter((header) => !/^(proxy-[^:]*|connection|keep-alive|upgrade|te|trailer|http2-settings|host):/i.test(header))
  const named = digits === undefined ? host : `${host}:${digits}`
  const lines = [`${method} ${path || '/'} HTTP/1.1`, `Host: ${named}`, ...passed, 'Connection: close', '', '']
  return { host, port: Number(digits ?? 80), head: lines.join('\r\n'), body }
}

/**
 * Two different body lengths let an attacker smuggle a second request, so the proxy accepts exactly one Content-Length and no chunked body.
 */
function bodyOf(headers: readonly string[]): number | undefined {
  if (headers.some((header) => /^transfer-encoding:/i.test(header))) return undefined
  const lengths = headers.filter((header) => /^content-length:/i.test(header))
  const [, digits] = /^[^:]+:[ \t]*(\d{1,15})[ \t]*$/.exec(lengths[0] ?? 'none: 0') ?? []
  return lengths.length > 1 || digits === undefined ? undefined : Number(digits)
}

type Joined = { readonly inside: ByteConnection; readonly outside: ByteConnection; readonly request: Request; readonly rest: Uint8Array }

async function join({ inside, outside, request: { head, body }, rest }: Joined): Promise<void> {
  if (body === 'all') await write(inside, Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n'))
  const first = body === 'all' ? rest : rest.subarray(0, body)
  await write(outside, Buffer.concat([Buffer.from(head, 'latin1'), first]))
  const up = body === 'all' ? inside.readable.pipeTo(outside.writable) : sendBody({ inside, outside, bytes: body - first.length })
  const late = new AbortController()
  // A closed peer looks the same as a peer that has finished sending, so limit how long the other side may continue.
  if (body === 'all') void up.catch(() => {}).then(() => setTimeout(() => late.abort(), LINGER_MS).unref())
  await Promise.allSettled([up, outside.readable.pipeTo(inside.writable, { signal: late.signal })])
}

/** Drops the bytes after the body: a far side that serves several hosts would read them as a second request to another host. */
async function sendBody({ inside, outside, bytes }: { readonly bytes: number } & Pick<Joined, 'inside' | 'outside'>): Promise<void> {
  const reader = inside.readable.getReader()
  using _end = atEnd(() => reader.releaseLock())
  for (let left = bytes; left > 0; ) {
    const { value } = await reader.read()
    if (value === undefined) return await outside.writable.abort()
    await write(outside, value.subarray(0, left))
    left -= Math.min(left, value.length)
  }
}

async function write({ writable }: ByteConnection, bytes: Uint8Array): Promise<void> {
  if (bytes.length === 0) return
  const writer = writable.getWriter()
  using _end = atEnd(() => writer.releaseLock())
  await writer.write(bytes)
}

type RefusalParts = {
  readonly proxy: Proxy
  readonly connection: ByteConnection
  readonly status: string
  readonly why: string
  readonly to?: object
}

async function refuse({ proxy, connection, status, why, to }: RefusalParts): Promise<void> {
  proxy.log('info', 'sandbox network refused', { ...to, why })
  const body = `${why}\n`
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`
  await write(connection, Buffer.from(head + body))
  await connection.writable.close()
}
