import { afterAll, afterEach, test as always, describe, expect } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '../../../../test/support/needs.ts'
import { policyWith } from '../../../security/gate.fixture.ts'
import { browser } from '../../../tools/browser/browser.ts'
import { openWorkspace } from '../../../workspace/workspace.ts'
import { browserTools, openPages } from './browser-tool.ts'

const test = always.if(needs('bwrap', 'chromium'))

const login = `<title>Shop</title><h1>Welcome</h1>
<form action=/login method=post><input name=user aria-label=User><select name=s aria-label=Size><option>small<option>large</select><button>Sign in</button></form>
<a href=/old>Old</a> <a href=/report.csv>Report</a> <a href=http://127.0.0.2:1/>Elsewhere</a> <a href=/loop>Loop</a>
<button onclick="alert('hello');fetch('/steal',{method:'POST',body:'x'})">Danger</button>
<img src="http://127.0.0.2:1/pixel.png"><script>fetch('http://10.0.0.1/a').catch(()=>{});new WebSocket('ws://127.0.0.1:PORT/ws');document.body.dataset.ready=1</script>`

const seen: string[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { pathname, port } = new URL(request.url)
    seen.push(`${request.method} ${pathname} ${request.headers.get('cookie') ?? ''} ${await request.text()}`.trim())
    const html = (body: string, headers = {}) => new Response(body, { headers: { 'content-type': 'text/html', ...headers } })
    if (pathname === '/login')
      return new Response(null, {
        status: 303,
        headers: [
          ['location', '/home'],
          ['set-cookie', 'a=1; Path=/'],
          ['set-cookie', 'b=2; Path=/'],
        ],
      })
    if (pathname === '/home') return html(`<title>Home</title><p>${request.headers.get('cookie')}`)
    if (pathname === '/old') return new Response(null, { status: 302, headers: { location: '/home' } })
    if (pathname === '/loop') return new Response(null, { status: 302, headers: { location: '/loop' } })
    if (pathname === '/away') return new Response(null, { status: 302, headers: { location: 'http://127.0.0.2:1/' } })
    if (pathname === '/report.csv') return new Response('a,b\n1,\xff', { headers: { 'content-type': 'application/octet-stream' } })
    if (pathname === '/spin') return html('<title>Spin</title><script>for(;;);</script>')
    return html(login.replace('PORT', port))
  },
})
const folder = mkdtempSync(join(tmpdir(), 'braidclaw-pages-'))
const base = `http://127.0.0.1:${server.port}`
const policy = policyWith({ workspace: folder, allowedDomains: ['127.0.0.1'], allowedPorts: [server.port ?? 0] })
const limits = { httpTimeoutS: 20, maxResponseBytes: 100_000 } as Parameters<typeof openPages>[0]['limits']
const opened = openPages({ policy, limits, env: {} })
const files = openWorkspace({
  root: folder,
  check: (path) => (path.endsWith('.forbidden') ? { ok: false, rule: 'path.test', reason: 'no' } : { ok: true }),
})
afterEach(() => void seen.splice(0))
afterAll(async () => {
  await opened.close()
  void server.stop(true)
  rmSync(folder, { recursive: true, force: true })
})

type Input = Parameters<typeof browser.run>[0]
const use = (input: Input, signal = new AbortController().signal) =>
  browser.run(input, { conversationId: 'c', callId: 'b', signal, plan: '' }, { pages: opened.pages, files })

/** Opens a page; `ref` finds the element of this name in the tree. */
async function at(path: string) {
  const { output, metadata, success, error } = await use({ action: 'open', url: base + path })
  if (!success) throw new Error(error)
  const page = String(metadata?.page)
  const ref = (name: string) => new RegExp(`"${name}".*?\\[ref=(\\w+)\\]`).exec(output)?.[1] ?? 'none'
  return { page, output, ref, [Symbol.asyncDispose]: async () => void (await use({ action: 'close', page })) }
}

test('without Chromium there is no tool', () => {
  expect(browserTools({ CHROMIUM: '/nowhere' })).toEqual([])
  expect(browserTools({})).toHaveLength(1)
})

describe('a page', () => {
  test('is read as a tree, and nothing of it reaches another host, an address of this network, or sends', async () => {
    await using shop = await at('/')
    expect(shop.output).toContain('heading "Welcome"')
    expect(shop.output).toContain('title: Shop')
    expect(shop.output).toMatch(/127\.0\.0\.2:1\/pixel\.png.*private|not allowed|refused|port/)
    expect(shop.output).toContain('10.0.0.1')
    const { output } = await use({ action: 'click', page: shop.page, ref: shop.ref('Danger') })
    expect(output).toContain('the page said "hello", and it was dismissed')
    expect(output).toContain('only action \\"submit\\" sends'.replaceAll('\\', ''))
    expect(seen).toEqual(['GET /'])
  })

  test('leads to another host by no click and no redirect', async () => {
    await using shop = await at('/')
    expect((await use({ action: 'click', page: shop.page, ref: shop.ref('Elsewhere') })).output).toContain('http://127.0.0.2:1/')
    expect(await use({ action: 'open', url: `${base}/away` })).toMatchObject({
      success: false,
      error: expect.stringContaining('127.0.0.2:1'),
    })
    expect(await use({ action: 'open', url: `${base}/loop` })).toMatchObject({
      success: false,
      error: expect.stringContaining('too often'),
    })
  })

  test('is filled in, sends with submit only, keeps its cookies and follows where it is led', async () => {
    await using shop = await at('/')
    const { page } = shop
    await use({ action: 'type', page, ref: shop.ref('User'), text: 'ann' })
    await use({ action: 'select', page, ref: shop.ref('Size'), text: 'large' })
    await use({ action: 'click', page, ref: shop.ref('Sign in') })
    expect(seen).toEqual(['GET /'])
    const again = await at('/')
    await use({ action: 'type', page: again.page, ref: again.ref('User'), text: 'ann' })
    const { output } = await use({ action: 'submit', page: again.page, ref: again.ref('Sign in') })
    expect(seen.slice(-2)).toEqual(['POST /login  user=ann&s=small', 'GET /home a=1; b=2'])
    expect(output).toContain('title: Home')
    expect(await use({ action: 'wait', page: again.page, text: 'b=2' })).toMatchObject({ success: true })
    await again[Symbol.asyncDispose]()
  })

  test('a link that redirects, a file, a screenshot', async () => {
    await using shop = await at('/')
    const { page } = shop
    const csv = await use({ action: 'click', page, ref: shop.ref('Report') })
    expect(csv.output).toContain('is a file (application/octet-stream, 8 bytes)')
    const fresh = await use({ action: 'snapshot', page })
    const ref = /"Report".*?\[ref=(\w+)\]/.exec(fresh.output)?.[1] ?? ''
    expect(await use({ action: 'download', page, ref, path: 'x.forbidden' })).toMatchObject({ success: false, deniedBy: 'path.test' })
    expect(await use({ action: 'download', page, ref, path: 'sub/report.csv' })).toMatchObject({ success: true })
    expect(readFileSync(join(folder, 'sub/report.csv'))).toEqual(Buffer.from('a,b\n1,\xff', 'utf8'))
    await use({ action: 'screenshot', page, path: 'shot.png' })
    expect(readFileSync(join(folder, 'shot.png')).subarray(1, 4).toString()).toBe('PNG')
    const old = /"Old".*?\[ref=(\w+)\]/.exec((await use({ action: 'snapshot', page })).output)?.[1] ?? ''
    expect((await use({ action: 'click', page, ref: old })).output).toContain('title: Home')
    expect(await use({ action: 'download', page, ref: 'e9', path: 'y' })).toMatchObject({ success: false })
  })

  test('wrong words are said, and an abort ends a page that spins', async () => {
    expect(await use({ action: 'open' })).toMatchObject({ error: 'browser: open needs "url"' })
    expect(await use({ action: 'click', page: 'p99@https://x', ref: 'e1' })).toMatchObject({
      error: expect.stringContaining('no page "p99@https://x"'),
    })
    {
      await using shop = await at('/')
      expect(await use({ action: 'click', page: shop.page, ref: 'e999' })).toMatchObject({
        error: expect.stringContaining('take a snapshot'),
      })
      expect(await use({ action: 'click', page: shop.page, ref: 'x >> css=a' })).toMatchObject({
        error: expect.stringContaining('take a snapshot'),
      })
      const other = shop.page.replace(/@.*/, '@https://example.org')
      expect(await use({ action: 'snapshot', page: other })).toMatchObject({ error: expect.stringContaining('is now at another site') })
    }
    const ending = new AbortController()
    const spinning = use({ action: 'open', url: `${base}/spin` }, ending.signal)
    ending.abort()
    expect(await spinning).toMatchObject({ success: false })
  })
})

test('the gate judges the host of the page, what is typed into it as sent there, and the file', () => {
  const page = 'p1@https://example.org'
  expect(browser.touches({ action: 'open', url: 'https://a.org/x' })).toEqual([{ kind: 'url', url: 'https://a.org/x', method: 'GET' }])
  expect(browser.touches({ action: 'click', page, ref: 'e1' })).toEqual([{ kind: 'url', url: 'https://example.org/', method: 'GET' }])
  expect(browser.touches({ action: 'submit', page, ref: 'e1' })).toEqual([{ kind: 'url', url: 'https://example.org/', method: 'POST' }])
  expect(browser.touches({ action: 'type', page, text: 'a b&c' })).toEqual([
    { kind: 'url', url: 'https://example.org/?a%20b%26c', method: 'GET' },
  ])
  expect(browser.touches({ action: 'download', page, ref: 'e1', path: 'f' })).toContainEqual({ kind: 'path', path: 'f', access: 'write' })
  expect(browser.touches({ action: 'click', page: 'nonsense' })).toEqual([{ kind: 'url', url: 'nonsense/', method: 'GET' }])
})
