import { describe, expect, test } from 'bun:test'
import { answer, guarded, raw, redirect } from './loopback.ts'

const ok = () => raw((peer) => void peer.write(answer('hello')))

describe('what is refused', () => {
  test('a URL that the gate refuses, no http URL and one with a password are never resolved', async () => {
    using server = ok()
    let resolved = 0
    const fetcher = guarded([server.port], {
      resolve: async () => {
        resolved++
        return ['127.0.0.1']
      },
    })
    expect(await fetcher.get(`http://private.test:${server.port}/`)).toMatchObject({ ok: false, denied: 'url.local_name' })
    expect(await fetcher.get('file:///etc/passwd')).toMatchObject({ ok: false, denied: 'url.scheme' })
    expect(await fetcher.get('data:text/plain,x')).toMatchObject({ ok: false, denied: 'url.scheme' })
    expect(await fetcher.get(`http://me:pw@ok.test:${server.port}/`)).toMatchObject({ ok: false, denied: 'url.userinfo' })
    expect(await fetcher.get('not a url')).toMatchObject({ ok: false, denied: 'url.invalid' })
    expect(resolved).toBe(0)
    expect(server.seen).toEqual([])
  })

  test('an address written in the URL is judged in every spelling', async () => {
    using server = ok()
    const fetcher = guarded([])
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]'])
      expect(await fetcher.get(`http://${host}:${server.port}/`)).toMatchObject({ ok: false, denied: 'url.private_address' })
    expect(server.seen).toEqual([])
  })

  test('one private address among several refuses the host', async () => {
    using server = ok()
    const mixed = guarded([server.port], { resolve: async () => ['127.0.0.1', '10.0.0.1'] })
    expect(await mixed.get(`http://mixed.test:${server.port}/`)).toMatchObject({ ok: false, denied: 'url.private_address' })
    expect(server.seen).toEqual([])
  })

  test('a redirect to a private place, another scheme or a URL with a password stops there', async () => {
    for (const [target, rule] of [
      ['http://private.test/', 'url.local_name'],
      ['http://10.1.2.3/', 'url.private_address'],
      ['http://169.254.169.254/latest', 'url.private_address'],
      ['file:///etc/passwd', 'url.scheme'],
      ['http://me:pw@ok.test/', 'url.userinfo'],
    ] as const) {
      using server = raw((peer) => void peer.write(redirect(target)))
      expect(await guarded([server.port]).get(`http://ok.test:${server.port}/`)).toMatchObject({ ok: false, denied: rule })
      expect(server.seen.length).toBe(1)
    }
  })

  test('a redirect loop ends', async () => {
    using server = raw((peer) => void peer.write(redirect('/again')))
    expect(await guarded([server.port]).get(`http://ok.test:${server.port}/`)).toMatchObject({
      ok: false,
      message: expect.stringContaining('redirects more than 5 times'),
    })
    expect(server.seen.length).toBe(6)
  })

  test('a name that is rebound after the check still leads to the checked address', async () => {
    using checked = raw((peer) => void peer.write(answer('checked')))
    using rebound = raw((peer) => void peer.write(answer('REBOUND')), { hostname: '127.0.0.2', port: checked.port })
    let asked = 0
    const fetcher = guarded([checked.port], { resolve: async () => (asked++ === 0 ? ['127.0.0.1'] : ['127.0.0.2']) })
    expect(await fetcher.get(`http://rebind.test:${checked.port}/`)).toMatchObject({ ok: true, body: 'checked' })
    expect(asked).toBe(1)
    expect(await fetcher.get(`http://rebind.test:${checked.port}/`)).toMatchObject({ ok: false, denied: 'url.private_address' })
    expect(rebound.seen).toEqual([])
  })

  test('a proxy named in the environment is not used', async () => {
    using server = ok()
    using proxy = raw((peer) => void peer.write(answer('PROXY')))
    const script = `
      import { createGuardedFetch } from ${JSON.stringify(`${import.meta.dir}/guarded.ts`)}
      const yes = () => ({ ok: true })
      const guard = createGuardedFetch({ judgeUrl: yes, judgeAddress: yes, resolve: async () => ['127.0.0.1'], maxBytes: 99, timeoutMs: 3000 })
      console.log(JSON.stringify(await guard.get('http://ok.test:${server.port}/')))`
    const http_proxy = `http://127.0.0.1:${proxy.port}`
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', env: { http_proxy, HTTP_PROXY: http_proxy } })
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({ ok: true, body: 'hello' })
    expect(proxy.seen).toEqual([])
  })
})

describe('redirects', () => {
  test('credentials stay with their origin', async () => {
    using other = ok()
    using first = raw((peer) => void peer.write(redirect(`http://other.test:${other.port}/`)))
    const headers = { Authorization: 'Bearer s3cret', Cookie: 'a=s3cret', 'X-Api-Key': 's3cret', Accept: 'text/plain' }
    const result = await guarded([first.port, other.port]).get(`http://first.test:${first.port}/`, { headers })
    expect(result).toMatchObject({ ok: true, body: 'hello', url: `http://other.test:${other.port}/` })
    expect(first.seen.join()).toContain('s3cret')
    expect(other.seen.join()).not.toContain('s3cret')
    expect(other.seen.join().toLowerCase()).toContain('accept: text/plain')
  })

  test('within one origin they go along, and a form becomes a read', async () => {
    using server = raw((peer, request) => void peer.write(request.startsWith('POST /a') ? redirect('/b', 303) : answer('done')))
    const headers = { authorization: 'Bearer s3cret', 'content-type': 'text/plain' }
    const fetcher = guarded([server.port])
    expect(await fetcher.get(`http://ok.test:${server.port}/a`, { method: 'POST', body: 'data', headers })).toMatchObject({
      ok: true,
      body: 'done',
    })
    expect(server.seen[1]).toStartWith('GET /b')
    expect(server.seen[1]).toContain('s3cret')
    expect(server.seen[1]?.toLowerCase()).not.toContain('content-')
  })

  test('a body is repeated within the origin and never for another', async () => {
    using same = raw((peer, request) => void peer.write(request.startsWith('POST /a') ? redirect('/b', 307) : answer('done')))
    expect(await guarded([same.port]).get(`http://ok.test:${same.port}/a`, { method: 'post', body: 'däta' })).toMatchObject({
      body: 'done',
    })
    expect(same.seen[1]).toEndWith('däta')
    using other = ok()
    using first = raw((peer) => void peer.write(redirect(`http://other.test:${other.port}/`, 308)))
    const result = await guarded([first.port, other.port]).get(`http://ok.test:${first.port}/`, { method: 'POST', body: 'data' })
    expect(result).toMatchObject({ ok: false, denied: 'url.redirect' })
    expect(other.seen).toEqual([])
  })

  test('a caller cannot set the headers of the connection', async () => {
    using server = ok()
    const headers = {
      Host: 'evil',
      'Content-Length': '99',
      'Transfer-Encoding': 'chunked',
      Connection: 'upgrade',
      'Proxy-Authorization': 'x',
    }
    expect(await guarded([server.port]).get(`http://ok.test:${server.port}/`, { headers })).toMatchObject({ ok: true })
    expect(server.seen.join()).not.toMatch(/evil|content-length|chunked|upgrade|proxy/i)
    expect(server.seen.join()).toContain(`ok.test:${server.port}`)
    const split = guarded([server.port]).get(`http://ok.test:${server.port}/`, { headers: { x: 'a\r\nb: c' } })
    expect(await split).toMatchObject({ ok: false, message: expect.stringContaining('does not allow') })
  })

  test('the next address is tried when the first does not answer', async () => {
    using server = ok()
    const yes = () => ({ ok: true }) as const
    const fetcher = guarded([], { judgeAddress: yes, resolve: async () => ['127.0.0.3', '127.0.0.1'] })
    expect(await fetcher.get(`http://ok.test:${server.port}/`)).toMatchObject({ ok: true, body: 'hello' })
    const nobody = guarded([], { judgeAddress: yes, resolve: async () => ['127.0.0.3'] })
    expect(await nobody.get(`http://ok.test:${server.port}/`)).toMatchObject({
      ok: false,
      message: expect.stringContaining('nothing listens'),
    })
  })

  test('an unknown host is said to be unknown', async () => {
    const failing = guarded([], { resolve: () => Promise.reject(new Error('NXDOMAIN')) })
    const none = guarded([], { resolve: async () => [] })
    for (const fetcher of [failing, none])
      expect(await fetcher.get('http://typo.test/')).toMatchObject({
        ok: false,
        message: expect.stringContaining('"typo.test" was not found'),
      })
  })
})
