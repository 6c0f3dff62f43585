/** An HTTP proxy for the inside of a sandbox: CONNECT and plain requests, to listed hosts only. Names are resolved out here. */

import type { Connection, Log, Network } from './port.ts'

type Proxy = { readonly allowedDomains: readonly string[]; readonly dial: Network['dial']; readonly log: Log }

type Request = { readonly host: string; readonly port: number; readonly tunnel: boolean; readonly head: string }

const HEAD_BYTES = 16_384
const HEAD_MS = 10_000
const PORTS = [80, 443]

/** Exact host, or `*.suffix` on a label border; case and a final dot do not count. */
export function isListed(host: string, domains: readonly string[]): boolean {
  const name = plain(host)
  return domains.map(plain).some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
}

function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** One request a connection; whatever cannot be read exactly is refused. Never throws into the listener. */
export function createProxy(proxy: Proxy): (connection: Connection) => void {
  return (connection) => {
    serve({ proxy, connection }).catch((error) => proxy.log('debug', 'sandbox proxy', { error: String(error) }))
  }
}

async function serve({ proxy, connection }: { readonly proxy: Proxy; readonly connection: Connection }): Promise<void> {
  const reader = connection.readable.getReader()
  const late = setTimeout(() => void reader.cancel().catch(() => {}), HEAD_MS)
  const opening = await readHead(reader)
  clearTimeout(late)
  reader.releaseLock()
  const request = opening && parse(opening.head)
  if (opening === undefined || request === undefined)
    return await refuse(connection, '400 Bad Request', 'the proxy takes CONNECT host:port or GET http://host/path')
  const { host, port } = request
  if (!isListed(host, proxy.allowedDomains) || !PORTS.includes(port)) {
    proxy.log('info', 'sandbox network refused', { host, port })
    return await refuse(connection, '403 Forbidden', `${host}:${port} is not in allowed_domains (ports 80 and 443)`)
  }
  const dialled = await proxy.dial({ host: plain(host), port })
  if (!dialled.ok) return await refuse(connection, '502 Bad Gateway', dialled.message)
  await join({ inside: connection, outside: dialled.connection, request, rest: opening.rest })
}

type Reader = { read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array }> }
type Opening = { readonly head: string; readonly rest: Uint8Array }

async function readHead(reader: Reader): Promise<Opening | undefined> {
  let bytes = Buffer.alloc(0)
  while (bytes.length < HEAD_BYTES) {
    const { value } = await reader.read()
    if (value === undefined) return undefined
    bytes = Buffer.concat([bytes, value])
    const end = bytes.indexOf('\r\n\r\n')
    if (end >= 0) return { head: bytes.subarray(0, end).toString('latin1'), rest: bytes.subarray(end + 4) }
  }
}

/** Plain requests lose their proxy headers and are sent with one answer a connection. */
function parse(head: string): Request | undefined {
  const [line = '', ...headers] = head.split('\r\n')
  const connect = /^CONNECT ([a-z\d._-]+):(\d{1,5}) HTTP\/1\.[01]$/i.exec(line)
  if (connect) return { host: connect[1] ?? '', port: Number(connect[2]), tunnel: true, head: '' }
  const [, method, host = '', digits, path = ''] =
    /^([A-Z]+) http:\/\/([a-z\d._-]+)(?::(\d{1,5}))?(\/[!-~]*)? HTTP\/1\.[01]$/i.exec(line) ?? []
  if (method === undefined || headers.some((header) => !/^[!#$%&'*+.^_`|~\w-]+:[^\r\n\0]*$/.test(header))) return undefined
  const kept = headers.filter((header) => !/^(proxy-[^:]*|connection|keep-alive|host):/i.test(header))
  const named = digits === undefined ? host : `${host}:${digits}`
  const lines = [`${method} ${path || '/'} HTTP/1.1`, `Host: ${named}`, ...kept, 'Connection: close', '', '']
  return { host, port: Number(digits ?? 80), tunnel: false, head: lines.join('\r\n') }
}

type Joined = { readonly inside: Connection; readonly outside: Connection; readonly request: Request; readonly rest: Uint8Array }

async function join({ inside, outside, request, rest }: Joined): Promise<void> {
  if (request.tunnel) await write(inside, Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n'))
  await write(outside, Buffer.concat([Buffer.from(request.head, 'latin1'), rest]))
  await Promise.allSettled([inside.readable.pipeTo(outside.writable), outside.readable.pipeTo(inside.writable)])
}

async function write({ writable }: Connection, bytes: Uint8Array): Promise<void> {
  if (bytes.length === 0) return
  const writer = writable.getWriter()
  await writer.write(bytes)
  writer.releaseLock()
}

async function refuse(connection: Connection, status: string, why: string): Promise<void> {
  const body = `${why}\n`
  const head = `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`
  await write(connection, Buffer.from(head + body))
  await connection.writable.close()
  await connection.readable.cancel()
}
