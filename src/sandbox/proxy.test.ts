import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { confined, hasBubblewrap } from './fixture.ts'
import { install } from './install.ts'
import type { Connection, Network } from './port.ts'
import { createProxy, isListed } from './proxy.ts'

const root = mkdtempSync(join(tmpdir(), 'braidclaw-proxy-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const web = (socket: Socket): Connection => {
  const { readable, writable } = Duplex.toWeb(socket)
  return { readable, writable } as unknown as Connection
}

/** The far side: answers everything with what it was sent. */
async function echo(): Promise<{ readonly port: number; readonly seen: string[]; readonly server: Server }> {
  const seen: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      seen.push(bytes.toString())
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { port: typeof address === 'object' && address ? address.port : 0, seen, server }
}

/** Dials the loopback server whatever the name, as if it had been resolved. */
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

async function through(request: string | readonly string[], allowedDomains: readonly string[] = ['example.org', '*.example.org']) {
  const far = await echo()
  const dialled: string[] = []
  const { listen, dial } = network(far.port, dialled)
  const path = join(root, `${crypto.randomUUID().slice(0, 8)}.sock`)
  const { stop } = listen(path, createProxy({ allowedDomains, dial, log() {} }))
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
    ['a host that does not resolve', 'CONNECT gone.example.org:443 HTTP/1.1\r\n\r\n', '502'],
  ])('%s is refused', async (_, request, status) => {
    const { answer, seen } = await through(request)
    expect(answer).toStartWith(`HTTP/1.1 ${status} `)
    expect(seen).toEqual([])
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

const canGoOut = hasBubblewrap() && Bun.which('socat') !== null && Bun.which('curl') !== null
if (!canGoOut) console.warn(`the way out of a sandbox is not tested: ${install}, socat and curl`)

test.if(canGoOut)('inside a sandbox a listed host is reached, another is refused, and nothing else is there', async () => {
  const far = await echo()
  const dialled: string[] = []
  using box = await confined({ allowedDomains: ['example.org'], network: network(far.port, dialled) })
  expect(await box.run('curl -s http://example.org/x')).toMatchObject({ code: 0, stdout: 'hello' })
  expect((await box.run('curl -s http://evil.org/')).stdout).toContain('evil.org:80 is not in allowed_domains')
  expect((await box.run(`curl -s --noproxy '*' http://127.0.0.1:${far.port}/`)).code).toBe(7)
  expect((await box.run('exit 3')).code).toBe(3)
  expect(dialled).toEqual(['example.org:80'])
  far.server.close()
})
