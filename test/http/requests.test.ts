/** Requests that no honest client sends, byte by byte: each is refused as JSON with the right status, and the server goes on. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import type { Nest } from '../support/cli.ts'
import { type Gateway, gateway } from '../support/gateway.ts'
import { type RawAnswer, rawRequest, sendRaw } from '../support/raw-http.ts'
import { home } from '../support/turns.ts'

const held: { at?: Nest; server?: Gateway } = {}
beforeAll(async () => {
  held.at = home()
  held.server = await gateway(held.at)
})
afterAll(async () => {
  await held.server?.[Symbol.asyncDispose]()
  held.at?.[Symbol.dispose]()
})

function at(): Gateway {
  if (!held.server) throw new Error('not started')
  return held.server
}

const usual = () => [`Host: 127.0.0.1:${at().port}`, `Authorization: Bearer ${at().token}`]
const json = 'Content-Type: application/json'
const send = (line: string, headers: readonly string[], body = '') => sendRaw(at().port, rawRequest(line, headers, body))
const post = (headers: readonly string[], body: string) => send('POST /chat HTTP/1.1', [...usual(), ...headers], body)

function refused({ status, head, body }: RawAnswer, expected: number, code: string): void {
  expect([status, body === '' ? '' : JSON.parse(body).error.code]).toEqual([expected, code])
  expect(head.toLowerCase()).toContain('content-type: application/json')
  expect(head.toLowerCase()).not.toContain('access-control-')
}

test('an honest request passes', async () => {
  expect((await send('GET /status HTTP/1.1', usual())).status).toBe(200)
})

test('a rebound or foreign name of the host is refused, and no host at all too', async () => {
  for (const host of [
    'evil.example',
    `evil.example:${at().port}`,
    '127.0.0.1',
    `127.0.0.1:${at().port + 1}`,
    `localhost.evil.example:${at().port}`,
  ])
    refused(await send('GET /status HTTP/1.1', [`Host: ${host}`, ...usual().slice(1)]), 403, 'foreign_host')
  expect((await send('GET /status HTTP/1.1', usual().slice(1))).status).toBe(400)
  refused(await send('GET /status HTTP/1.0', usual().slice(1)), 400, 'no_host')
  expect((await send('GET /status HTTP/1.1', [`Host: LOCALHOST:${at().port}`, ...usual().slice(1)])).status).toBe(200)
})

test('a page of another site is refused, also its preflight, and gets no permission from us', async () => {
  const own = `Origin: http://127.0.0.1:${at().port}`
  for (const origin of ['http://evil.example', 'null', `https://127.0.0.1:${at().port}`, 'http://127.0.0.1'])
    refused(await send('GET /status HTTP/1.1', [...usual(), `Origin: ${origin}`]), 403, 'foreign_origin')
  refused(await send('GET /status HTTP/1.1', [...usual(), 'Sec-Fetch-Site: cross-site']), 403, 'foreign_origin')
  const asks = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: authorization']
  refused(await send('OPTIONS /chat HTTP/1.1', [...usual(), 'Origin: http://evil.example', ...asks]), 403, 'foreign_origin')
  refused(await send('OPTIONS /chat HTTP/1.1', [...usual(), own, ...asks]), 405, 'wrong_method')
  expect((await send('GET /status HTTP/1.1', [...usual(), own])).status).toBe(200)
})

test('headers that were sent twice fail safely', async () => {
  const [host = '', token = ''] = usual()
  const twice = [
    [host, 'Host: evil.example', token],
    ['Host: evil.example', host, token],
    [host, token, 'Authorization: Bearer other'],
    [host, 'Authorization: Bearer other', token],
    [host, token, token],
  ]
  for (const headers of twice) {
    const { status } = await send('GET /status HTTP/1.1', headers)
    expect([400, 401, 403]).toContain(status)
  }
  const lengths = await sendRaw(
    at().port,
    ['POST /chat HTTP/1.1', ...usual(), json, 'Content-Length: 2', 'Content-Length: 20', '', '{}'].join('\r\n'),
    { ms: 1_500 },
  )
  expect(lengths.status).not.toBe(200)
  const both = await sendRaw(
    at().port,
    [
      'POST /chat HTTP/1.1',
      ...usual(),
      json,
      'Content-Length: 4',
      'Transfer-Encoding: chunked',
      '',
      '0\r\n\r\nGET /status HTTP/1.1\r\nHost: x\r\n\r\n',
    ].join('\r\n'),
    { ms: 1_500 },
  )
  expect(both.status).not.toBe(200)
})

test('a credential in another form, another place or another spelling is none', async () => {
  const [host = ''] = usual()
  const { token } = at()
  for (const header of [
    `Authorization: Basic ${btoa(`x:${token}`)}`,
    `Authorization: ${token}`,
    'Authorization: Bearer',
    `Authorization: Bearer ${token} x`,
    `Authorization: Bearer ${token.toUpperCase()}`,
  ])
    refused(await send('GET /status HTTP/1.1', [host, header]), 401, 'unauthorized')
  refused(await send(`GET /status?token=${token} HTTP/1.1`, [host]), 401, 'unauthorized')
  refused(await send('GET /status HTTP/1.1', [host, `Cookie: braidclaw_${at().port}=${token}`]), 401, 'unauthorized')
  expect((await send('GET /status HTTP/1.1', [host, `authorization: bearer ${token}`])).status).toBe(200)
})

test('paths that some programs read in another way than others are refused', async () => {
  for (const path of ['//status', '/health//', '/health%00', '/%5cstatus'])
    refused(await send(`GET ${path} HTTP/1.1`, usual()), 400, 'bad_path')
  refused(await send('GET /nothing HTTP/1.1', usual()), 404, 'not_found')
  refused(await send('GET /statusx HTTP/1.1', usual()), 404, 'not_found')
  const wrong = await send('DELETE /status HTTP/1.1', usual())
  refused(wrong, 405, 'wrong_method')
  expect(wrong.head.toLowerCase()).toContain('allow: get')
  for (const path of ['/conversations/..%2f..%2fstatus', '/conversations/conversation_1%2f..'])
    expect((await send(`GET ${path} HTTP/1.1`, usual())).status).not.toBe(200)
})

test('a body of another type, encoding or shape is refused', async () => {
  const body = '{"message":"hi"}'
  for (const type of [
    'Content-Type: text/plain',
    'Content-Type: application/x-www-form-urlencoded',
    'Content-Type:',
    'Content-Type: application/json; charset=latin1',
    'Content-Type: application/json, text/plain',
  ])
    refused(await post([type], body), 415, 'not_json')
  for (const coding of ['gzip', 'deflate', 'br', 'gzip, gzip'])
    refused(await post([json, `Content-Encoding: ${coding}`], body), 415, 'compressed_body')
  for (const broken of ['{', '{"message":NaN}', '{"message":Infinity}', "{'message':'hi'}", '{"message":"hi"}}', '\u0000', '[1,]'])
    refused(await post([json], broken), 400, 'bad_json')
  for (const wrong of [
    '[]',
    '"hi"',
    '{}',
    '{"message":1}',
    '{"message":null}',
    '{"message":""}',
    '{"message":"hi","more":1}',
    '{"message":"hi","stream":"yes"}',
    '{"message":"hi","conversation_id":"../x"}',
  ])
    refused(await post([json], wrong), 400, 'bad_request')
  const invalid = Buffer.concat([
    Buffer.from(`POST /chat HTTP/1.1\r\n${usual().join('\r\n')}\r\n${json}\r\nContent-Length: 16\r\n\r\n{"message":"`),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('"}'),
  ])
  refused(await sendRaw(at().port, invalid), 400, 'bad_json')
})

test('numbers in a query are whole and not negative', async () => {
  for (const query of ['limit=-1', 'limit=1.5', 'limit=NaN', 'limit=1e999', 'limit=0', 'limit=99999', 'after=-1', 'after=9007199254740993'])
    refused(await send(`GET /receipts?${query} HTTP/1.1`, usual()), 400, 'bad_request')
})

test('a bomb is refused: huge, chunked without end, compressed, deeply nested', async () => {
  const text = (length: number) => `{"text":"${'a'.repeat(length)}"}`
  const pin = 'POST /memory/pins HTTP/1.1'
  refused(await send(pin, [...usual(), json], text(1_100_000)), 413, 'too_large')
  // A turn may have pictures.
  refused(await post([json], text(17_000_000)), 413, 'too_large')
  refused(await post([json], `{"message":"${'a'.repeat(1_100_000)}"}`), 400, 'bad_request')
  const piece = 'a'.repeat(65_536)
  const chunked =
    [pin, ...usual(), json, 'Transfer-Encoding: chunked', '', ''].join('\r\n') + `${piece.length.toString(16)}\r\n${piece}\r\n`.repeat(20)
  expect((await sendRaw(at().port, chunked)).status).toBe(413)
  const bomb = gzipSync(Buffer.alloc(50_000_000, 97))
  const zipped = Buffer.concat([
    Buffer.from(['POST /chat HTTP/1.1', ...usual(), json, 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`, '', ''].join('\r\n')),
    bomb,
  ])
  refused(await sendRaw(at().port, zipped), 415, 'compressed_body')
  refused(await post([json], `{"message":${'['.repeat(500_000)}`), 400, 'too_deep')
  refused(await post([json], `{"message":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`), 400, 'too_deep')
  expect((await send('GET /status HTTP/1.1', usual())).status).toBe(200)
})

test('a body that never arrives does not hold others up', async () => {
  const stuck = Array.from({ length: 20 }, () =>
    sendRaw(at().port, rawRequest('POST /chat HTTP/1.1', [...usual(), json, 'Content-Length: 100']), { ms: 1_500 }),
  )
  expect((await send('GET /status HTTP/1.1', usual())).status).toBe(200)
  await Promise.all(stuck)
})

test('many wrong secrets are slowed down, and the right one still passes', async () => {
  const wrong = await Promise.all(
    Array.from({ length: 120 }, () =>
      fetch(`${at().url}/status`, { headers: { authorization: 'Bearer wrong' } }).then(({ status }) => status),
    ),
  )
  expect(new Set(wrong)).toEqual(new Set([401, 429]))
  expect((await at().ask('/status')).status).toBe(200)
})
