import { describe, expect, test } from 'bun:test'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { answer, guarded, raw } from './loopback.ts'

const get = async (head: string, body: string | Uint8Array = '', end = true) => {
  using server = raw((peer) => {
    peer.write(`HTTP/1.1 200 OK\r\n${head}\r\n`)
    peer.write(body)
    if (end) peer.end()
  })
  return await guarded([server.port]).get(`http://ok.test:${server.port}/`)
}

const length = (bytes: Uint8Array) => `Content-Length: ${bytes.length}\r\n`

describe('hostile bodies', () => {
  const zeros = Buffer.alloc(20_000_000)
  for (const [encoding, bomb] of [
    ['gzip', gzipSync(zeros)],
    ['deflate', deflateSync(zeros)],
    ['br', brotliCompressSync(zeros.subarray(0, 5_000_000))],
  ] as const)
    test(`a ${encoding} bomb is cut at the limit`, async () => {
      const result = await get(`Content-Encoding: ${encoding}\r\n${length(bomb)}`, bomb)
      expect(result).toMatchObject({ ok: true, truncated: true, bytes: 10_000 })
    })

  test('compressed input without end and without output is stopped', async () => {
    const nothing = Buffer.concat(Array.from({ length: 5_000 }, () => gzipSync('')))
    expect(await get('Content-Encoding: gzip\r\n', nothing, false)).toMatchObject({
      ok: false,
      message: expect.stringContaining('more than 10000 compressed bytes'),
    })
  })

  test('a plain flood is cut at the limit and the server let go', async () => {
    let gone = false
    using server = raw(async (peer) => {
      peer.write('HTTP/1.1 200 OK\r\n\r\n')
      while (!peer.closed()) {
        peer.write('x'.repeat(10_000))
        await Bun.sleep(1)
      }
      gone = true
    })
    const result = await guarded([server.port]).get(`http://ok.test:${server.port}/`)
    expect(result).toMatchObject({ ok: true, truncated: true, body: 'x'.repeat(10_000) })
    while (!gone) await Bun.sleep(1)
  })

  test('a slow drip ends with the total time, not with each byte', async () => {
    using server = raw(async (peer) => {
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n')
      while (!peer.closed()) {
        peer.write('.')
        await Bun.sleep(5)
      }
    })
    const result = await guarded([server.port], { timeoutMs: 150 }).get(`http://ok.test:${server.port}/`)
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining('no complete answer within 0.15 s') })
  })

  test('silence before the head, and a name server that never answers, end with the total time', async () => {
    using server = raw(() => {})
    const silent = await guarded([server.port], { timeoutMs: 100 }).get(`http://ok.test:${server.port}/`)
    expect(silent).toMatchObject({ ok: false, message: expect.stringContaining('no complete answer') })
    const deaf = guarded([], { timeoutMs: 100, resolve: () => new Promise(() => {}) })
    expect(await deaf.get('http://ok.test/')).toMatchObject({ ok: false, message: expect.stringContaining('no complete answer') })
  })

  test('headers without end are refused', async () => {
    using server = raw((peer) => {
      peer.write('HTTP/1.1 200 OK\r\n')
      for (let i = 0; i < 200 && !peer.closed(); i++) peer.write(`X-${i}: ${'a'.repeat(1_000)}\r\n`)
    })
    const result = await guarded([server.port]).get(`http://ok.test:${server.port}/`)
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining('larger than 32 KiB') })
  })

  test('a body shorter than promised, a torn chunk and torn compression are failures, not short answers', async () => {
    const packed = gzipSync('hello world, hello world')
    const torn = packed.subarray(0, 20)
    for (const result of [
      await get('Content-Length: 100\r\n', 'short'),
      await get('Transfer-Encoding: chunked\r\n', '5\r\nhel'),
      await get('Transfer-Encoding: chunked\r\n', 'zz\r\nhello'),
      await get(`Content-Encoding: gzip\r\n${length(torn)}`, torn),
      await get('Content-Encoding: gzip\r\n', 'no gzip at all'),
      await get('Content-Encoding: rot13\r\n', 'uryyb'),
    ])
      expect(result).toEqual({ ok: false, message: expect.any(String) })
  })

  test('what is not HTTP, or two lengths that disagree, is a failure', async () => {
    for (const text of [
      'SSH-2.0-OpenSSH_9\r\n',
      '',
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    ]) {
      using server = raw((peer) => {
        peer.write(text)
        peer.end()
      })
      expect(await guarded([server.port]).get(`http://ok.test:${server.port}/`)).toMatchObject({ ok: false })
    }
  })

  test('an abort ends the request, before it and in the middle of the body', async () => {
    using server = raw((peer) => void peer.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'))
    const fetcher = guarded([server.port])
    const controller = new AbortController()
    const running = fetcher.get(`http://ok.test:${server.port}/`, { signal: controller.signal })
    while (server.seen.length === 0) await Bun.sleep(1)
    controller.abort()
    expect(await running).toEqual({ ok: false, message: 'the request was cancelled' })
    expect(await fetcher.get(`http://ok.test:${server.port}/`, { signal: controller.signal })).toMatchObject({ ok: false })
    expect(server.seen.length).toBe(1)
  })
})

describe('bodies', () => {
  test('gzip, deflate, br, chunked and until-close bodies come out whole', async () => {
    const text = 'héllo '.repeat(100)
    const bytes = Buffer.from(text)
    for (const result of [
      await get(`Content-Encoding: gzip\r\n`, gzipSync(bytes)),
      await get(`Content-Encoding: deflate\r\n`, deflateSync(bytes)),
      await get(`Content-Encoding: br\r\n`, brotliCompressSync(bytes)),
      await get('', bytes),
      await get(
        'Transfer-Encoding: chunked\r\n',
        Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n0\r\n\r\n')]),
      ),
    ])
      expect(result).toMatchObject({ ok: true, body: text, bytes: 700, truncated: false, status: 200 })
  })

  test('a limit inside a character does not tear it, and exactly the limit is not cut', async () => {
    const cut = await get('', `x${'é'.repeat(6_000)}`)
    expect(cut).toMatchObject({ ok: true, truncated: true, body: `x${'é'.repeat(4_999)}` })
    expect(await get('', 'x'.repeat(10_000))).toMatchObject({ ok: true, truncated: false, bytes: 10_000 })
  })

  test('the charset of the answer is used', async () => {
    expect(await get('Content-Type: text/plain; charset=ISO-8859-1\r\n', Uint8Array.of(0x63, 0xe9))).toMatchObject({ body: 'cé' })
    expect(await get('Content-Type: text/plain; charset=constructor\r\n', 'é')).toMatchObject({ body: 'é' })
    expect(await get('', Uint8Array.of(0xff, 0x41))).toMatchObject({ body: '\ufffdA' })
  })

  test('a 404 is an answer', async () => {
    using server = raw((peer) => void peer.write(answer('gone').replace('200 OK', '404 Not Found')))
    expect(await guarded([server.port]).get(`http://ok.test:${server.port}/`)).toMatchObject({ ok: true, status: 404, body: 'gone' })
  })
})
