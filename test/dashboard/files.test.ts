/** The files of the dashboard as the gateway serves them: who may read them, how they are kept, and how large they are. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Gateway, gateway } from '../support/gateway.ts'
import { sendRaw } from '../support/raw-http.ts'
import { home } from '../support/turns.ts'

const at = home()
const state: { server?: Gateway } = {}

beforeAll(async () => {
  state.server = await gateway(at, [], { token: 'not needed' })
})

afterAll(async () => {
  await state.server?.stop()
  at[Symbol.dispose]()
})

/** Sends a request without a token, and returns the bytes as they came. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(`${state.server?.url}${path}`, { method, headers, decompress: false })
  return { status: response.status, headers: response.headers, bytes: new Uint8Array(await response.arrayBuffer()) }
}

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** The files that the page names. */
async function namedFiles(): Promise<string[]> {
  const { bytes } = await get('/')
  return [...textOf(bytes).matchAll(/(?:src|href)="\.?(\/[\w.-]+)"/g)].map(([, path = '']) => path)
}

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

test('the page needs no token, has no inline code, and forbids everything else', async () => {
  const { status, headers, bytes } = await get('/')
  expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([200, 'text/html;charset=utf-8', 'no-cache'])
  expect(headers.get('content-security-policy')).toBe(policy)
  expect(headers.get('x-frame-options')).toBe('DENY')
  expect(textOf(bytes)).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|https?:/)
})

test('each file of it is named by its content, kept for good, and sent with the same policy', async () => {
  const files = await namedFiles()
  expect(files.map((path) => path.replace(/.*\./, '')).sort()).toEqual(['css', 'js', 'svg'])
  for (const path of files) {
    const { status, headers } = await get(path)
    expect([path, status, headers.get('cache-control')]).toEqual([path, 200, 'public, max-age=31536000, immutable'])
    expect(headers.get('content-security-policy')).toBe(policy)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(path).toMatch(/-[0-9a-z]{8}\.\w+$/)
  }
})

test('the first load is at most 150 KB, packed', async () => {
  const sizes = await Promise.all(
    ['/', ...(await namedFiles())].map(async (path) => (await get(path, { 'accept-encoding': 'gzip' })).bytes.length),
  )
  const sum = sizes.reduce((total, size) => total + size, 0)
  expect(sum).toBeGreaterThan(10_000)
  expect(sum).toBeLessThanOrEqual(150_000)
})

test('a client that unpacks nothing gets the same bytes', async () => {
  for (const path of ['/', ...(await namedFiles())]) {
    const [packed, plain] = [await get(path, { 'accept-encoding': 'gzip, br' }), await get(path, { 'accept-encoding': 'identity' })]
    expect([packed.headers.get('content-encoding'), plain.headers.get('content-encoding')]).toEqual(['gzip', null])
    expect(packed.headers.get('vary')).toBe('accept-encoding')
    expect(Bun.gunzipSync(packed.bytes)).toEqual(plain.bytes)
  }
})

test('who has the page already is told so', async () => {
  const tag = (await get('/')).headers.get('etag') ?? ''
  expect(tag).toMatch(/^"[0-9a-f]{32}"$/)
  const known = await get('/', { 'if-none-match': tag })
  expect([known.status, known.bytes.length]).toEqual([304, 0])
  expect((await get('/', { 'if-none-match': '"another"' })).status).toBe(200)
})

test('other names lead nowhere: no sources, no files of the machine, no other methods', async () => {
  for (const path of ['/main.tsx', '/index.html', '/style.css', '/chunk-00000000.js', '/page/main.js', '/.env', '/chunk.js.map']) {
    const { status, headers, bytes } = await get(path)
    expect([path, status, headers.get('content-type')]).toEqual([path, 404, 'application/json;charset=utf-8'])
    expect(JSON.parse(textOf(bytes)).error.code).toBe('not_found')
  }
  for (const path of ['/../../etc/passwd', '/%2e%2e/package.json', '/..%2fpackage.json', '//etc/passwd'])
    expect(
      (await sendRaw(state.server?.port ?? 0, `GET ${path} HTTP/1.1\r\nHost: localhost:${state.server?.port}\r\n\r\n`)).status,
    ).toBeGreaterThanOrEqual(400)
  expect((await get('/', {}, 'DELETE')).status).toBe(405)
  expect([(await get('/', {}, 'HEAD')).status, (await get('/', {}, 'HEAD')).bytes.length]).toEqual([200, 0])
})

test('the guards come first: a foreign name of the host or a page of another site gets nothing', async () => {
  expect((await get('/', { host: 'evil.example' })).status).toBe(403)
  expect((await get('/', { origin: 'https://evil.example' })).status).toBe(403)
})
