/** Limits of the server: slow readers, quiet streams, many connections, other addresses, certificates, and a port that is taken. */

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { type Gateway, gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { home, refused, scripted } from '../support/turns.ts'

const memoryOf = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

function open(server: Gateway, bytes: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, '127.0.0.1', () => {
      socket.write(bytes)
      resolve(socket)
    })
    socket.on('error', reject)
  })
}

const head = (server: Gateway, line: string, more = '') =>
  `${line} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${server.token}\r\nContent-Type: application/json\r\n${more}`

const connections = repetitions({ fast: 300, deep: 2_000 })

test(`${connections} open connections with half a request leave the server answering, within bounds`, async () => {
  using at = home()
  await using server = await gateway(at)
  await server.ask('/status')
  const before = memoryOf(server.pid)
  const sockets = await Promise.all(
    Array.from({ length: connections }, () => open(server, 'GET /status HTTP/1.1\r\nHost: 127').catch(() => undefined)),
  )
  expect((await server.ask('/status')).status).toBe(200)
  expect(memoryOf(server.pid) - before).toBeLessThan(60)
  for (const socket of sockets) socket?.destroy()
  expect((await server.ask('/health')).status).toBe(200)
}, 120_000)

test('a client that does not read its events is dropped, and the others get all of theirs', async () => {
  using at = home()
  const { env } = scripted(
    at,
    Array.from({ length: 40 }, () => ({ text: 'x'.repeat(300_000), chunks: 3 })),
  )
  await using server = await gateway(at, [], { env })
  const lazy = await open(server, `${head(server, 'GET /events?after=0')}\r\n`)
  lazy.pause()
  const keen = new AbortController()
  const seen: string[] = []
  const reading = (async () => {
    const response = await fetch(`${server.url}/events`, { headers: { authorization: `Bearer ${server.token}` }, signal: keen.signal })
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) seen.push(piece)
  })().catch(() => {})
  const before = memoryOf(server.pid)
  for (let turn = 0; turn < 40; turn++) expect((await server.ask('/chat', { message: `turn ${turn}` })).status).toBe(200)
  expect(memoryOf(server.pid) - before).toBeLessThan(200)
  const closed = new Promise<boolean>((resolve) => lazy.on('close', () => resolve(true)))
  lazy.resume()
  expect(await Promise.race([closed, Bun.sleep(5_000).then(() => false)])).toBe(true)
  keen.abort()
  await reading
  expect(seen.join('').match(/"type":"run_ended"/g)).toHaveLength(40)
}, 120_000)

test('an event stream resumes after its last id without a gap or a double', async () => {
  using at = home()
  await using server = await gateway(at)
  const read = async (from: string | undefined, until: number) => {
    const stop = new AbortController()
    const response = await fetch(`${server.url}/events`, {
      headers: { authorization: `Bearer ${server.token}`, ...(from === undefined ? {} : { 'last-event-id': from }) },
      signal: stop.signal,
    })
    const ids: string[] = []
    let text = ''
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      ids.splice(0, ids.length, ...[...text.matchAll(/^id: (\S+)$/gm)].map(([, id = '']) => id))
      if (ids.length >= until) break
    }
    stop.abort()
    return ids.slice(0, until)
  }
  for (const message of ['one', 'two', 'three']) await server.ask('/chat', { message })
  const all = await read('0', 12)
  const first = await read('0', 5)
  const rest = await read(first.at(-1), 7)
  expect([...first, ...rest]).toEqual(all)
  expect(new Set(all).size).toBe(12)
  expect((await server.ask('/events', undefined, { headers: { 'last-event-id': 'x' } })).status).toBe(400)
}, 120_000)

test('another address wants a token first, and is said when all is ready', async () => {
  using at = home()
  refused(await at.run(['serve', '--port', '0', '--host', '0.0.0.0']), 1, 'braidclaw token new me --scope admin')
  await using server = await gateway(at, ['--host', '0.0.0.0'])
  await server.says('for other machines too')
  const [address] = Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).filter(({ family, internal }) => family === 'IPv4' && !internal),
  )
  const own = `http://127.0.0.1:${server.port}`
  expect((await fetch(`${own}/status`, { headers: { authorization: `Bearer ${server.token}` } })).status).toBe(200)
  if (address) expect((await fetch(`http://${address.address}:${server.port}/health`)).status).toBe(200)
  expect((await fetch(`${own}/health`, { headers: { host: `agent.example:${server.port}` } })).status).toBe(403)
})

test('a home without tokens says how to make one, and a new one works at once', async () => {
  using at = home()
  const started = at.start(['serve', '--port', '0'], { timeoutMs: 20_000 })
  const url = await started.says(/ready: (http:\S+) \(nobody has a token yet: braidclaw token new me --scope admin\)/)
  const token = await tokenOf(at, 'me', '--scope', 'admin')
  expect((await fetch(`${url}/status`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
  process.kill(started.pid, 'SIGTERM')
  expect((await started.result).code).toBe(0)
})

test('a taken port, a missing certificate and half a pair are each refused with a sentence', async () => {
  using at = home()
  await using server = await gateway(at)
  refused(await at.run(['serve', '--port', String(server.port)]), 1, 'something listens there already')
  at.config(`${readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')}[channels.http]\ntls_cert = "/nope.pem"\n`)
  refused(await at.run(['serve', '--port', '0']), 1, 'belong together')
})

test.if(needs('openssl'))('with a certificate the gateway speaks HTTPS, and its cookie is for HTTPS alone', async () => {
  using at = home()
  const [cert, key] = [join(at.dir, 'cert.pem'), join(at.dir, 'key.pem')]
  const made = Bun.spawnSync([
    'openssl',
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    key,
    '-out',
    cert,
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=DNS:localhost,IP:127.0.0.1',
  ])
  expect(made.exitCode).toBe(0)
  at.config(`${readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')}[channels.http]\ntls_cert = "${cert}"\ntls_key = "${key}"\n`)
  await using server = await gateway(at)
  expect(server.url).toStartWith('https://')
  const tls = { tls: { ca: readFileSync(cert, 'utf8') } }
  expect((await fetch(`${server.url}/status`, { ...tls, headers: { authorization: `Bearer ${server.token}` } })).status).toBe(200)
  const session = await fetch(`${server.url}/session`, {
    ...tls,
    method: 'POST',
    body: JSON.stringify({ token: server.token }),
    headers: { 'content-type': 'application/json', origin: server.url },
  })
  expect(session.headers.get('set-cookie')).toEndWith('; Secure')
  const plain = await fetch(`http://127.0.0.1:${server.port}/health`).catch(() => undefined)
  expect(plain?.status ?? 0).not.toBe(200)
  writeFileSync(key, 'no key')
  refused(await at.run(['serve', '--port', '0']), 1, 'is not a PEM file')
})

test('the daemon serves HTTP too when its settings say so', async () => {
  using at = home()
  at.config(`${readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')}[channels.http]\nenabled = true\nport = 0\n`)
  const token = await tokenOf(at, 'me', '--scope', 'admin')
  const started = at.start(['daemon', '--fifo-dir', join(at.dir, 'fifos')], { timeoutMs: 20_000 })
  const url = await started.says(/ready: .*(http:\/\/[^\s;,]+)/)
  const status = await fetch(`${url}/status`, { headers: { authorization: `Bearer ${token}` } })
  expect(JSON.parse(await status.text()).channels).toEqual(['fifo', 'http'])
  process.kill(started.pid, 'SIGTERM')
  expect((await started.result).code).toBe(0)
})
