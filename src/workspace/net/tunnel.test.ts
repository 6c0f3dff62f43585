import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ByteConnection } from '../../sandbox/contract.ts'
import { createTunnels, type Dialled, type TunnelOptions } from './tunnel.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-tunnel-'))
const far: { server: Server; port: number; sockets: Set<Socket>; talk: (socket: Socket) => void } = {
  server: createServer({ allowHalfOpen: true }, (socket) => {
    far.sockets.add(socket)
    socket.on('error', () => {}).on('close', () => far.sockets.delete(socket))
    far.talk(socket)
  }),
  port: 0,
  sockets: new Set(),
  talk() {},
}
beforeAll(async () => {
  await new Promise<void>((resolve) => far.server.listen(0, '127.0.0.1', resolve))
  const address = far.server.address()
  far.port = typeof address === 'object' && address ? address.port : 0
})
afterAll(() => {
  far.server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Only the loopback address and only our port count as public. */
const tunnels = (changes: Partial<TunnelOptions> = {}) =>
  createTunnels({
    judgeHost: ({ host }) =>
      host === 'listed.test' ? undefined : { ok: false, denied: 'url.not_listed', message: `${host} is not listed` },
    judgeAddress: ({ ip, port }) =>
      ip.startsWith('127.0.0.') && port === far.port
        ? { ok: true }
        : { ok: false, rule: 'url.private_address', reason: `${ip} is private` },
    resolve: async () => ['127.0.0.1'],
    ...changes,
  })

const opened = (dialled: Dialled): ByteConnection => {
  if (!dialled.ok) throw new Error(dialled.message)
  return dialled.connection
}
const dial = (changes?: Partial<TunnelOptions>, host = 'listed.test') => tunnels(changes).dial({ host, port: far.port })
const text = async ({ readable }: ByteConnection) => Buffer.from(await new Response(readable).arrayBuffer()).toString()

describe('a connection is not made', () => {
  test('to a host that is not listed; it is not even looked up', async () => {
    const asked: string[] = []
    const resolve = async (host: string) => [`${asked.push(host)}`]
    expect(await dial({ resolve }, 'evil.test')).toEqual({ ok: false, denied: 'url.not_listed', message: 'evil.test is not listed' })
    expect(asked).toEqual([])
  })

  test.each([
    ['a private address', ['10.0.0.1']],
    ['a private address among good ones', ['127.0.0.1', '10.0.0.1']],
    ['a mapped one', ['::ffff:10.0.0.1']],
  ])('to a listed name that means %s', async (_, ips) => {
    expect(await dial({ resolve: async () => ips })).toMatchObject({ ok: false, denied: 'url.private_address' })
    expect(far.sockets.size).toBe(0)
  })

  test('to what is no host, to a name that does not resolve, to a closed port, or too late', async () => {
    const anything: TunnelOptions['judgeHost'] = () => undefined
    expect(await dial({ judgeHost: anything }, 'a b')).toMatchObject({ ok: false, denied: 'url.invalid' })
    expect(await dial({ resolve: async () => [] })).toMatchObject({ ok: false, message: expect.stringContaining('was not found') })
    const port = 1
    const judgeAddress: TunnelOptions['judgeAddress'] = () => ({ ok: true })
    expect(await tunnels({ judgeAddress }).dial({ host: 'listed.test', port })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/refused/i),
    })
    const never = () => new Promise<never>(() => {})
    expect(await dial({ resolve: never, timeoutMs: 20 })).toEqual({
      ok: false,
      message: `listed.test:${far.port}: no connection within 0.02 s`,
    })
  })
})

test('the name is looked up once, and the checked address is connected to; the next one when the first does not answer', async () => {
  far.talk = (socket) => socket.end('hello')
  let asked = 0
  const resolve = async () => (++asked === 1 ? ['127.0.0.9', '127.0.0.1'] : ['10.0.0.1'])
  const connection = opened(await dial({ resolve }))
  expect(await text(connection)).toBe('hello')
  expect(asked).toBe(1)
  await connection.writable.close()
  await until(() => far.sockets.size === 0)
  expect(far.sockets.size).toBe(0)
})

test('either direction may end before the other', async () => {
  far.talk = (socket) => {
    const got: Buffer[] = []
    socket.on('data', (chunk) => got.push(Buffer.from(chunk))).on('end', () => socket.end(`got ${Buffer.concat(got)}`))
  }
  const connection = opened(await dial())
  const writer = connection.writable.getWriter()
  await writer.write(Buffer.from('all of it'))
  await writer.close()
  expect(await text(connection)).toBe('got all of it')
  await until(() => far.sockets.size === 0)
  expect(far.sockets.size).toBe(0)
})

test('who reads slowly slows the far side down, and gets every byte in order', async () => {
  const piece = Buffer.alloc(2 ** 20, 'abcdefghijklmnopqrstuvwxyz.')
  const pieces = 40
  let gone = 0
  far.talk = async (socket) => {
    for (; gone < pieces; gone++) if (!socket.write(piece)) await new Promise((resolve) => socket.once('drain', resolve))
    socket.end()
  }
  const connection = opened(await dial())
  let before = -1
  for (let tries = 0; tries < 50 && before !== gone; tries++) {
    before = gone
    await Bun.sleep(40)
  }
  expect(gone).toBeLessThan(pieces / 2)
  const expected = new Bun.CryptoHasher('sha256')
  for (let count = 0; count < pieces; count++) expected.update(piece)
  expect(Bun.SHA256.hash(await new Response(connection.readable).arrayBuffer(), 'hex')).toBe(expected.digest('hex'))
  await connection.writable.close()
})

test('who writes to a slow reader waits for it, and loses nothing', async () => {
  const bytes = Buffer.alloc(16 * 2 ** 20, '0123456789/')
  const hash = new Bun.CryptoHasher('sha256')
  far.talk = (socket) => {
    socket
      .on('data', (chunk) => hash.update(chunk))
      .on('end', () => socket.end())
      .pause()
    setTimeout(() => socket.resume(), 30)
  }
  const connection = opened(await dial())
  const writer = connection.writable.getWriter()
  let done = false
  const written = writer.write(bytes).then(() => {
    done = true
  })
  await Bun.sleep(10)
  expect(done).toBe(false)
  await written
  await writer.close()
  await text(connection)
  expect(hash.digest('hex')).toBe(Bun.SHA256.hash(bytes, 'hex'))
})

test('a side that goes away ends the other: writing fails, reading ends, nothing stays open', async () => {
  far.talk = (socket) => socket.once('data', () => socket.destroy())
  const connection = opened(await dial())
  const writer = connection.writable.getWriter()
  await writer.write(Buffer.from('x'))
  await text(connection).catch(() => {})
  const failed = async () => {
    for (let tries = 0; tries < 200; tries++) await writer.write(Buffer.alloc(65_536))
  }
  expect(failed()).rejects.toThrow()
  await until(() => far.sockets.size === 0)
  expect(far.sockets.size).toBe(0)
})

test('a reader that gives up closes the connection', async () => {
  far.talk = (socket) => socket.write('endless')
  const connection = opened(await dial())
  await connection.readable.cancel()
  await until(() => far.sockets.size === 0)
  expect(far.sockets.size).toBe(0)
})

test('a local listener hands over each connection, and is gone when it is stopped', async () => {
  const path = join(folder, 'socket')
  const { stop } = tunnels().listen(path, (connection) => void connection.readable.pipeTo(connection.writable))
  const echo = (said: string) =>
    new Promise<string>((resolve, reject) => {
      let heard = ''
      const socket = connect(path)
        .on('error', reject)
        .on('data', (bytes) => {
          heard += bytes.toString()
        })
      socket.on('end', () => resolve(heard)).end(said)
    })
  expect(await Promise.all([echo('one'), echo('two'.repeat(100_000))])).toEqual(['one', 'two'.repeat(100_000)])
  stop()
  expect(echo('three')).rejects.toThrow()
})

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200 && !holds(); tries++) await Bun.sleep(5)
}
