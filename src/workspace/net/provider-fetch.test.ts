import { describe, expect, test } from 'bun:test'
import { answer, raw, redirect } from './loopback.ts'
import { createProviderFetch } from './provider-fetch.ts'

const at = (port: number) => `http://127.0.0.1:${port}`

describe('what is refused', () => {
  test('a base URL that is none is refused at once', () => {
    for (const baseUrl of ['', 'localhost:1234', 'file:///etc', 'ftp://x'])
      expect(() => createProviderFetch({ baseUrl })).toThrow('base_url')
  })

  test('another host, port or scheme is never contacted', async () => {
    using other = raw((peer) => void peer.write(answer('no')))
    const wire = createProviderFetch({ baseUrl: 'http://127.0.0.1:1/v1' })
    for (const url of [at(other.port), new URL(at(other.port)), new Request(at(other.port)), 'http://localhost:1/', 'https://127.0.0.1:1/'])
      expect(wire(url)).rejects.toThrow('is not the configured base_url origin')
    await Bun.sleep(1)
    expect(other.seen).toEqual([])
  })

  test('a redirect to another origin is refused, with the key unsent', async () => {
    using other = raw((peer) => void peer.write(answer('no')))
    for (const status of [301, 302, 303, 307, 308]) {
      using server = raw((peer) => void peer.write(redirect(at(other.port), status)))
      const wire = createProviderFetch({ baseUrl: at(server.port) })
      const sent = wire(`${at(server.port)}/chat`, { method: 'POST', body: '{}', headers: { authorization: 'Bearer k' } })
      expect(await sent.catch(String)).toContain('is not the configured base_url origin')
    }
    expect(other.seen).toEqual([])
  })

  test('a redirect that would lose the body, and one without end, are refused', async () => {
    using lossy = raw((peer) => void peer.write(redirect('/elsewhere', 302)))
    const wire = createProviderFetch({ baseUrl: at(lossy.port) })
    expect(await wire(`${at(lossy.port)}/chat`, { method: 'POST', body: '{}' }).catch(String)).toContain('set base_url to the new place')
    expect(await wire(`${at(lossy.port)}/chat`).catch(String)).toContain('redirects more than 3 times')
  })
})

describe('what passes', () => {
  test('a post is repeated within the origin when the server asks for it', async () => {
    using server = raw((peer, request) => void peer.write(request.startsWith('POST /old') ? redirect('/new', 308) : answer('done')))
    const wire = createProviderFetch({ baseUrl: `${at(server.port)}/v1` })
    const response = await wire(`${at(server.port)}/old`, { method: 'POST', body: '{"a":1}', headers: { authorization: 'Bearer k' } })
    expect(await response.text()).toBe('done')
    expect(server.seen[1]).toContain('Bearer k')
    expect(server.seen[1]).toEndWith('{"a":1}')
  })

  test('a caller that asks for it gets the redirect itself', async () => {
    using server = raw((peer) => void peer.write(redirect('http://192.0.2.1/', 302)))
    const wire = createProviderFetch({ baseUrl: at(server.port) })
    const response = await wire(at(server.port), { redirect: 'manual' })
    expect(response.status).toBe(302)
  })

  test('pieces arrive while the answer is still being sent, and an abort ends it', async () => {
    using server = raw(async (peer) => void peer.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'))
    const controller = new AbortController()
    const wire = createProviderFetch({ baseUrl: at(server.port) })
    const response = await wire(at(server.port), { signal: controller.signal })
    const reader = response.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('hello')
    const next = reader?.read().then(
      () => 'more',
      (error) => String(error),
    )
    controller.abort()
    expect(await next).toContain('abort')
  })
})
