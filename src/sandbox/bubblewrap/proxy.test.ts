import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import type { Log } from '../../runtime/port.ts'
import type { ByteConnection, Network } from '../contract.ts'
import { confined, hasBubblewrap } from '../fixture.ts'
import { install } from '../install.ts'
import { createProxy, isListed } from './proxy.ts'

const root = mkdtempSync(join(tmpdir(), 'braidclaw-proxy-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const web = (socket: Socket): ByteConnection => {
  const { readable, writable } = Duplex.toWeb(socket)
  return { readable, writable } as unknown as ByteConnection
}

/** A server that keeps the bytes of each connection, and answers shortly after the first bytes. */
async function echo(): Promise<{ readonly port: number; readonly seen: string[]; readonly server: Server }> {
  const seen: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    const at = seen.push('') - 1
    socket.on('data', (bytes) => {
      if (seen[at] === '') setTimeout(() => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`), 20)
      seen[at] += bytes.toString()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { port: typeof address === 'object' && address ? address.port : 0, seen, server }
}

/** Dials the loopback server for every name, as if the name had resolved to it. */
function network(port: number, dialled: string[]): Network {
  return {
    listen(path, accept) {
      const server = createServer((socket) => {
        socket.on('error', () => {})
        accept(web(socket))
      }).listen(path)
      return { stop: () => void server.close() }
    },
    async dial({ host, port: wanted }) {
      dialled.push(`${host}:${wanted}`)
      if (host === 'gone.example.org') return { ok: false, message: 'gone.example.org: no such host' }
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      await new Promise((resolve) => socket.once('connect', resolve))
      return { ok: true, connection: web(socket) }
    },
  }
}

type More = { readonly allowedPorts?: readonly number[]; readonly log?: Log }

async function through(request: string | readonly string[], { allowedPorts, log = () => {} }: More = {}) {
  const far = await echo()
  const dialled: string[] = []
  const { listen, dial } = network(far.port, dialled)
  const path = join(root, `${crypto.randomUUID().slice(0, 8)}.sock`)
  const { stop } = listen(path, createProxy({ allowedDomains: ['example.org', '*.example.org'], allowedPorts, dial, log }))
  const socket = connect(path)
  socket.on('error', () => {})
  let answer = ''
  socket.on('data', (bytes) => {
    answer += bytes.toString()
  })
  const ended = new Promise((resolve) => socket.once('close', resolve))
  for (const piece of typeof request === 'string' ? [request] : request) {
    socket.write(piece)
    await Bun.sleep(5)
  }
  await ended
  stop()
  far.server.close()
  return { answer, dialled, seen: far.seen }
}

describe('hosts', () => {
  test.each(['evil.org', 'example.org.evil.org', 'notexample.org', 'xample.org', '', '127.0.0.1', 'example.orgx'])(
    '%p is not listed',
    (host) => expect(isListed(host, ['example.org', '*.example.org'])).toBe(false),
  )
  test('a suffix is what lies below, on the border of a label', () => {
    expect([isListed('example.org', ['*.example.org']), isListed('aexample.org', ['*.example.org'])]).toEqual([false, false])
    expect([isListed('a.example.org', ['*.example.org']), isListed('A.B.Example.ORG.', ['*.example.org'])]).toEqual([true, true])
    expect(isListed('EXAMPLE.org', ['example.org'])).toBe(true)
  })
})

describe('requests', () => {
  test.each([
    ['another host', 'CONNECT evil.org:443 HTTP/1.1\r\n\r\n', '403'],
    ['another port', 'CONNECT example.org:22 HTTP/1.1\r\n\r\n', '403'],
    ['a host in the Host header only', 'GET http://evil.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n', '403'],
    ['a user name before the host', 'GET http://example.org@evil.org/ HTTP/1.1\r\n\r\n', '400'],
    ['an address in brackets', 'CONNECT [::1]:443 HTTP/1.1\r\n\r\n', '400'],
    ['no absolute address', 'GET / HTTP/1.1\r\nHost: example.org\r\n\r\n', '400'],
    ['https in plain', 'GET https://example.org/ HTTP/1.1\r\n\r\n', '400'],
    ['a header that is none', 'GET http://example.org/ HTTP/1.1\r\nHost example.org\r\n\r\n', '400'],
    ['a head without end', `GET http://example.org/${'a'.repeat(20_000)}`, '400'],
    ['an address that was not listed', 'CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n', '403'],
    ['the address of a cloud', 'GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\n\r\n', '403'],
    ['an address as one number', 'CONNECT 2130706433:443 HTTP/1.1\r\n\r\n', '403'],
    ['a body in pieces', 'POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', '400'],
    [
      'two ways to say where the body ends',
      'POST http://example.org/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: x\r\n\r\nbody',
      '400',
    ],
    ['two lengths', 'POST http://example.org/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody', '400'],
    ['a length that is none', 'POST http://example.org/ HTTP/1.1\r\nContent-Length: +4\r\n\r\nbody', '400'],
    ['a blank before the colon', 'POST http://example.org/ HTTP/1.1\r\nContent-Length : 4\r\n\r\nbody', '400'],
    ['a header that goes on in the next line', 'GET http://example.org/ HTTP/1.1\r\nX: 1\r\n Host: evil.org\r\n\r\n', '400'],
    ['a bare line feed in a header', 'GET http://example.org/ HTTP/1.1\r\nX: 1\nHost: evil.org\r\n\r\n', '400'],
    ['a head that is only line feeds', 'GET http://example.org/ HTTP/1.1\nHost: example.org\n\n'.padEnd(20_000, '\n'), '400'],
    ['a second word in the address', 'GET http://example.org/ http://evil.org/ HTTP/1.1\r\n\r\n', '400'],
    ['another protocol', 'CONNECT example.org:443 HTTP/2\r\n\r\n', '400'],
    ['SOCKS', '\u0005\u0001\u0000'.padEnd(20_000, '\u0000'), '400'],
    ['a port that is none', 'CONNECT example.org:99999 HTTP/1.1\r\n\r\n', '403'],
    ['a host that does not resolve', 'CONNECT gone.example.org:443 HTTP/1.1\r\n\r\n', '502'],
  ])('%s is refused', async (_, request, status) => {
    const said: string[] = []
    const { answer, seen } = await through(request, { log: (_, event) => void said.push(event) })
    expect(answer).toStartWith(`HTTP/1.1 ${status} `)
    expect(seen).toEqual([])
    expect(said).toEqual(['sandbox network refused'])
  })

  test('a listed host is reached through a tunnel, byte for byte, also when the head comes in pieces', async () => {
    const { answer, dialled, seen } = await through(['CONNECT Example.org:443 HT', 'TP/1.1\r\nUser-Agent: x\r\n\r', '\nfirst bytes'])
    expect(answer).toStartWith('HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK')
    expect(dialled).toEqual(['example.org:443'])
    expect(seen).toEqual(['first bytes'])
  })

  test('a plain request goes on without its proxy headers, with the host of its address', async () => {
    const request =
      'GET http://a.example.org/path?q=1 HTTP/1.1\r\nHost: evil.org\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n'
    const { answer, dialled, seen } = await through(request)
    expect(answer).toEndWith('hello')
    expect(dialled).toEqual(['a.example.org:80'])
    expect(seen).toEqual(['GET /path?q=1 HTTP/1.1\r\nHost: a.example.org\r\nAccept: */*\r\nConnection: close\r\n\r\n'])
  })
})

test('what follows the body is not sent on: to another of its hosts it would be a request of its own', async () => {
  const second = 'GET /admin HTTP/1.1\r\nHost: evil.org\r\n\r\n'
  const first = 'POST http://example.org/ HTTP/1.1\r\nContent-Length: 4\r\nUpgrade: websocket\r\n\r\nbody'
  const expected = 'POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody'
  expect((await through(first + second)).seen).toEqual([expected])
  expect((await through([first, second])).seen).toEqual([expected])
  expect((await through([first.slice(0, -2), `dy${second}`, second])).seen).toEqual([expected])
  const without = await through(`GET http://example.org/ HTTP/1.1\r\n\r\n${second}`)
  expect(without.seen).toEqual(['GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n'])
})

test('a port that is listed is reached, and no other', async () => {
  expect((await through('CONNECT example.org:8443 HTTP/1.1\r\n\r\nx', { allowedPorts: [8443] })).dialled).toEqual(['example.org:8443'])
  expect((await through('CONNECT example.org:8444 HTTP/1.1\r\n\r\nx', { allowedPorts: [8443] })).dialled).toEqual([])
})

test('who opens more connections than any program needs is refused, until some end', async () => {
  const { listen, dial } = network(0, [])
  const path = join(root, 'many.sock')
  const { stop } = listen(path, createProxy({ allowedDomains: ['example.org'], dial, log() {} }))
  const open = () =>
    new Promise<{ readonly socket: Socket; readonly answer: () => string }>((resolve) => {
      let answer = ''
      const socket = connect(path, () => resolve({ socket, answer: () => answer }))
      socket
        .on('error', () => {})
        .on('data', (bytes) => {
          answer += bytes.toString()
        })
    })
  const all = await Promise.all(Array.from({ length: 140 }, open))
  for (let tries = 0; tries < 200 && !all.some(({ answer }) => answer() !== ''); tries++) await Bun.sleep(5)
  expect(new Set(all.map(({ answer }) => answer().slice(0, 12)))).toEqual(new Set(['', 'HTTP/1.1 503']))
  for (const { socket } of all) socket.destroy()
  await Bun.sleep(50)
  const later = await open()
  later.socket.write('nonsense\r\n\r\n')
  for (let tries = 0; tries < 200 && later.answer() === ''; tries++) await Bun.sleep(5)
  expect(later.answer()).toStartWith('HTTP/1.1 400')
  stop()
})

const canGoOut = hasBubblewrap() && Bun.which('socat') !== null && Bun.which('curl') !== null
if (!canGoOut) console.warn(`the way out of a sandbox is not tested: ${install}, socat and curl`)

test.if(canGoOut)('inside a sandbox a listed host is reached, another is refused, and nothing else is there', async () => {
  const far = await echo()
  const dialled: string[] = []
  using box = await confined({ allowedDomains: ['example.org'], network: network(far.port, dialled) })
  expect(await box.run('curl -s http://example.org/x')).toMatchObject({ code: 0, stdout: 'hello' })
  expect((await box.run('curl -s http://evil.org/')).stdout).toContain('evil.org:80 is not one of the hosts that this command was given')
  expect((await box.run(`curl -s --noproxy '*' http://127.0.0.1:${far.port}/`)).code).toBe(7)
  expect((await box.run('exit 3')).code).toBe(3)
  expect(dialled).toEqual(['example.org:80'])
  far.server.close()
})
