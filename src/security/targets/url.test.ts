import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isAllowed, judgeUrl } from './url.ts'

const policy = {
  allowedDomains: ['example.com', '*.docs.org', 'BÜCHER.de', '*.bad entry', 'https://no.com', '*', '127.0.0.1', '*.8.8.8.8'],
  allowedPorts: [8443],
}

function judge(url: string, method = 'GET') {
  return judgeUrl({ url, method, policy })
}

function ruleOf(url: string, method?: string): string {
  const verdict = judge(url, method)
  return verdict.ok ? 'ok' : verdict.rule
}

describe('refused by its text', () => {
  test.each([
    ['', 'url.invalid'],
    ['example.com', 'url.invalid'],
    ['//example.com', 'url.invalid'],
    ['http:example.com', 'url.invalid'],
    ['http:/example.com', 'url.invalid'],
    ['http:///example.com', 'url.invalid'],
    ['https://', 'url.invalid'],
    [' https://example.com', 'url.invalid'],
    ['https://example.com/a b', 'url.invalid'],
    ['https://exa\tmple.com/', 'url.invalid'],
    ['https://example.com/\n', 'url.invalid'],
    ['https://example.com/\u0000', 'url.invalid'],
    ['https:\\\\example.com', 'url.invalid'],
    ['https://example.com\\@evil.org/', 'url.invalid'],
    ['https://example.com/\u202e', 'url.invalid'],
    ['https://example.com/\ud800', 'url.invalid'],
    [`https://example.com/${'a'.repeat(9000)}`, 'url.invalid'],
    ['https://example.com:99999/', 'url.invalid'],
    ['file:///etc/passwd', 'url.scheme'],
    ['ftp://example.com/', 'url.scheme'],
    ['javascript:alert(1)', 'url.scheme'],
    ['data:text/plain,x', 'url.scheme'],
    ['ws://example.com/', 'url.scheme'],
    ['blob:https://example.com/x', 'url.scheme'],
    ['https://user@example.com/', 'url.userinfo'],
    ['https://user:pw@example.com/', 'url.userinfo'],
    ['https://@example.com/', 'url.userinfo'],
    ['https://example.com@evil.org/', 'url.userinfo'],
    ['http://0x7f.1/', 'url.host_spelling'],
    ['http://0x7f000001/', 'url.host_spelling'],
    ['http://2130706433/', 'url.host_spelling'],
    ['http://017700000001/', 'url.host_spelling'],
    ['http://0177.0.0.1/', 'url.host_spelling'],
    ['http://127.1/', 'url.host_spelling'],
    ['http://8.8.8.8./', 'url.host_spelling'],
    ['http://%31%32%37.0.0.1/', 'url.host_spelling'],
    ['http://\uff11\uff12\uff17.0.0.1/', 'url.host_spelling'],
    ['http://127\u30020.0.1/', 'url.host_spelling'],
    ['http://ex\u00adample.com/', 'url.host_spelling'],
    ['http://\uff45xample.com/', 'url.host_spelling'],
    ['http://example\u3002com/', 'url.host_spelling'],
    ['http://example.com../', 'url.host_spelling'],
    ['http://a..example.com/', 'url.host_spelling'],
    ['http://exam%70le.com/', 'url.host_spelling'],
    ['http://127.0.0.2/', 'url.private_address'],
    ['http://10.0.0.1/', 'url.private_address'],
    ['http://169.254.169.254/latest/meta-data/', 'url.private_address'],
    ['http://0.0.0.0/', 'url.private_address'],
    ['http://[::1]/', 'url.private_address'],
    ['http://[::]/', 'url.private_address'],
    ['http://[::ffff:127.0.0.1]/', 'url.private_address'],
    ['http://[::ffff:7f00:1]/', 'url.private_address'],
    ['http://[64:ff9b::7f00:1]/', 'url.private_address'],
    ['http://[fd00:ec2::254]/', 'url.private_address'],
    ['http://localhost/', 'url.local_name'],
    ['http://LOCALHOST./', 'url.local_name'],
    ['http://x.localhost/', 'url.local_name'],
    ['http://printer.local/', 'url.local_name'],
    ['http://metadata.google.internal/', 'url.local_name'],
    ['http://intranet/', 'url.local_name'],
    ['http://router.home.arpa/', 'url.local_name'],
    ['https://example.com:8080/', 'url.port'],
    ['https://example.com:22/', 'url.port'],
    ['http://127.0.0.1:4173/', 'url.port'],
  ])('%j breaks %s', (url, rule) => expect(ruleOf(url)).toBe(rule))

  test.each(['CONNECT', 'TRACE', '', 'GET\r\nX: y', 'PROPFIND'])('method %j is refused', (method) =>
    expect(ruleOf('https://example.com/', method)).toBe('url.method'),
  )
})

describe('risk', () => {
  test.each([
    ['https://example.com/', 'GET', 'low'],
    ['http://example.com/', 'head', 'low'],
    ['https://EXAMPLE.com./a', 'GET', 'low'],
    ['https://example.com:8443/', 'GET', 'low'],
    ['https://a.docs.org/', 'GET', 'low'],
    ['https://b.a.docs.org/', 'GET', 'low'],
    ['https://bücher.de/', 'GET', 'low'],
    ['https://xn--bcher-kva.de/', 'GET', 'low'],
    ['http://127.0.0.1/', 'GET', 'low'],
    ['https://docs.org/', 'GET', 'medium'],
    ['https://evildocs.org/', 'GET', 'medium'],
    ['https://notexample.com/', 'GET', 'medium'],
    ['https://example.com.evil.org/', 'GET', 'medium'],
    ['https://sub.example.com/', 'GET', 'medium'],
    ['https://no.com/', 'GET', 'medium'],
    ['https://8.8.8.8/', 'GET', 'medium'],
    ['https://\u0435xample.com/', 'GET', 'medium'],
    ['https://example.com/', 'POST', 'medium'],
    ['https://example.com/', 'DELETE', 'medium'],
    ['https://other.org/', 'POST', 'high'],
    ['https://other.org/', 'PUT', 'high'],
  ])('%s %s is %s', (url, method, risk) => expect(judge(url, method)).toMatchObject({ ok: true, risk }))
})

test('the text to fetch is canonical and without fragment; host and port stand beside it', () => {
  expect(judge('HTTPS://Example.COM:443/a/../b?q=1#frag', 'get')).toMatchObject({
    url: 'https://example.com/b?q=1',
    host: 'example.com',
    port: 443,
    method: 'GET',
    allowed: true,
  })
  expect(judge('http://[2606:4700::0:1111]/')).toMatchObject({ host: '2606:4700::1111', port: 80 })
})

test('without a list nothing is an allowed domain', () => {
  expect(isAllowed('example.com', [])).toBe(false)
  expect(isAllowed('example.com', ['*'])).toBe(false)
  expect(isAllowed('com', ['*.com'])).toBe(false)
})

test('an entry that is no plain host matches nothing and breaks nothing', () => {
  expect(
    isAllowed('example.org', [
      'user@example.org',
      'example.org:443',
      'https://example.org',
      'example.org/',
      'ex^ample',
      '*.ex^ample',
      '',
      '*.',
      '.',
    ]),
  ).toBe(false)
  expect(isAllowed('a.example.org', ['*.u@example.org', '*example.org', 'a.*.org'])).toBe(false)
})

test('a URL may have 8,192 characters', () => {
  expect(ruleOf(`https://example.com/${'a'.repeat(8172)}`)).toBe('ok')
  expect(ruleOf(`https://example.com/${'a'.repeat(8173)}`)).toBe('url.invalid')
})

test('every IPv4 address that is not public is refused, however it is spelt', () => {
  const spell = (n: number, how: number) => {
    const [a, b, c, d] = [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255]
    return (
      [
        `${a}.${b}.${c}.${d}`,
        `${n}`,
        `0x${n.toString(16)}`,
        `0${n.toString(8)}`,
        `${a}.${b}.${(c << 8) | d}`,
        `[::ffff:${a}.${b}.${c}.${d}]`,
      ][how] ?? ''
    )
  }
  const hosts = fc.constantFrom(0x7f000002, 0x0a000001, 0xc0a80001, 0xa9fea9fe, 0xac100001, 0x64400001, 0xe0000001)
  fc.assert(
    fc.property(hosts, fc.integer({ min: 0, max: 0xff }), fc.integer({ min: 0, max: 5 }), (host, add, how) => {
      expect(ruleOf(`http://${spell(host + add, how)}/`)).not.toBe('ok')
    }),
  )
})

test('what is allowed names, for the platform parser too, the very host that was judged', () => {
  const host = fc.oneof(
    fc.domain(),
    fc.ipV4Extended(),
    fc.ipV6().map((ip) => `[${ip}]`),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom('http', 'https', 'HTTP', 'ftp'),
      fc.constantFrom('', 'u@', ':@'),
      host,
      fc.webPath(),
      (scheme, user, name, path) => {
        const verdict = judge(`${scheme}://${user}${name}${path}`)
        if (!verdict.ok) return
        expect(new URL(verdict.url).hostname.replace(/^\[|\]$|\.$/g, '')).toBe(verdict.host)
        expect(judge(verdict.url)).toEqual(verdict)
        expect(new URL(verdict.url).username).toBe('')
      },
    ),
    { numRuns: 2000 },
  )
})

test('a request could take data along when it sends, goes to a host that is not listed, or asks at length', () => {
  const carries = (url: string, method = 'GET') => {
    const verdict = judgeUrl({ url, method, policy: { allowedDomains: ['good.org'], allowedPorts: [] } })
    return verdict.ok && verdict.carries
  }
  expect(carries('https://good.org/a?b=c')).toBe(false)
  expect(carries(`https://good.org/${'a'.repeat(199)}`)).toBe(false)
  expect(carries(`https://good.org/${'a'.repeat(150)}?${'b'.repeat(50)}`)).toBe(true)
  expect(carries('https://good.org/', 'POST')).toBe(true)
  expect(carries('https://evil.net/')).toBe(true)
})
