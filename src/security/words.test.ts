/** Tests that refusals name the value, the reason and what to do instead, since an empty or wrong reason helps nobody. */

import { describe, expect, test } from 'bun:test'
import { callOf, gateOf, tool } from './gate.fixture.ts'
import { judgeAddress, judgeConnection, parseAddress } from './targets/address.ts'
import { type Access, judgePath } from './targets/path.ts'
import { judgeUrl } from './targets/url.ts'

describe('an address is refused as', () => {
  test.each([
    ['0.1.2.3', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['127.0.0.1', 'loopback'],
    ['168.63.129.16', 'a cloud host service'],
    ['169.254.169.254', 'link-local'],
    ['172.16.0.1', 'private'],
    ['192.0.0.1', 'protocol-reserved'],
    ['192.0.2.1', 'documentation'],
    ['192.88.99.1', '6to4 relay'],
    ['192.168.0.1', 'private'],
    ['198.18.0.1', 'benchmarking'],
    ['198.51.100.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['255.255.255.254', 'reserved'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['::ffff:8.8.8.8', 'IPv4-mapped'],
    ['::8.8.8.8', 'IPv4-compatible'],
    ['::ffff:0:8.8.8.8', 'IPv4-translated'],
    ['64:ff9b::1', 'NAT64'],
    ['64:ff9b:1::1', 'local NAT64'],
    ['100::1', 'discard'],
    ['2001::1', 'Teredo'],
    ['2001:10::1', 'protocol-reserved'],
    ['2001:db8::1', 'documentation'],
    ['2002::1', '6to4'],
    ['3fff::1', 'documentation'],
    ['fc00::1', 'unique local'],
    ['fe80::1', 'link-local'],
    ['fec0::1', 'site-local'],
    ['ff02::1', 'multicast'],
    ['4000::1', 'reserved'],
  ])('%s: %s', (ip, word) => {
    const reason = `address: "${ip}" is ${word}; only public addresses are fetched`
    expect(judgeAddress(ip)).toEqual({ ok: false, rule: 'url.private_address', reason })
  })

  test('none at all', () => {
    const reason = 'address: "fe80::1%eth0" is not a plain IPv4 or IPv6 address'
    expect(judgeAddress('fe80::1%eth0')).toEqual({ ok: false, rule: 'url.private_address', reason })
    for (const text of ['x::ffff:1.2.3.4', '::1.2.3.4x', '1.2.3.4::', 'x1.2.3.4']) expect(parseAddress(text)).toBeUndefined()
  })

  test('unless it is listed, in brackets or not, but half a bracket is a name', () => {
    const allows = (host: string, entry: string) => judgeConnection({ host, ip: '::1', allowedDomains: [entry] }).ok
    expect([allows('[::1]', '::1'), allows('::1', '[::1]'), allows('::1', '::1')]).toEqual([true, true, true])
    for (const odd of ['x[::1]', '[::1]x', '[::1', '::1]']) expect([allows(odd, '::1'), allows('::1', odd)]).toEqual([false, false])
    expect(judgeConnection({ host: '0.0.0.1', ip: '::1', allowedDomains: ['::1', '0.0.0.1'] }).ok).toBe(false)
  })
})

describe('a path is refused with', () => {
  const workspace = '/home/u/ws'
  const reasonOf = (path: string, access: Access = 'read', more: object = {}) => {
    const policy = {
      workspace,
      workspaceOnly: true,
      forbiddenPaths: ['/home/u/ws/vault'],
      protectedPaths: ['/home/u/ws/own'],
      home: '/home/u',
      ...more,
    }
    const verdict = judgePath({ path, access, cwd: workspace, policy })
    return verdict.ok ? 'ok' : verdict.reason
  }
  test.each<[string, string, Access?]>([
    [' ', 'path: " " names nothing; use "." for the workspace itself'],
    ['a\u0007', 'path: "a\\u0007" holds a control or text-direction character; spell the name without it'],
    ['~bob/x', 'path: "~bob/x" begins with "~" and a name; write "./~bob/x" if that is a file\'s name'],
    ['/etc/x', 'path: "/etc/x" is outside the workspace /home/u/ws; use a path inside it'],
    ['vault/x', 'path: "vault/x" is under the forbidden path /home/u/ws/vault; work elsewhere'],
    ['own', 'path: "own" belongs to BraidClaw itself; tools never touch it'],
    ['.bashrc', 'path: ".bashrc" is run or obeyed by other programs; ask the operator to change it by hand', 'write'],
  ])('%j: %s', (path, reason, access = 'read') => expect(reasonOf(path, access)).toBe(reason))

  test('its length in bytes, the kernel, and no more of a long name than helps', () => {
    expect(reasonOf('é'.repeat(200))).toEndWith(' is 400 bytes; 4096 are the limit, and 255 for each name')
    const kernel = 'path: "/proc/1" is a kernel interface, not a file; use a regular file'
    expect(reasonOf('/proc/1', 'read', { workspaceOnly: false })).toBe(kernel)
    expect(reasonOf(`~${'x'.repeat(99)}`)).toEndWith(`write "./~${'x'.repeat(39)}" if that is a file's name`)
  })
})

describe('a URL is refused with', () => {
  const policy = { allowedDomains: ['example.com'], allowedPorts: [8443] }
  const said = (url: string, method = 'GET') => {
    const verdict = judgeUrl({ url, method, policy })
    return verdict.reason
  }
  test.each([
    ['example.com', 'url: "example.com" is not a plain absolute URL; write it as https://host/path'],
    ['ftp://example.com/', 'url: "ftp://example.com/" uses ftp:; only http and https are fetched'],
    ['https://u@example.com/', 'url: "https://u@example.com/" has "@" before the path; remove the user name'],
    ['http://0x7f.1/', 'url: "http://0x7f.1/" means the host "127.0.0.1"; write that host'],
    ['http://printer/', 'url: "http://printer/" names this machine or its network; only public hosts are fetched'],
    ['https://example.com:81/', 'url: "https://example.com:81/" uses port 81; only 80, 443 and allowed_ports are'],
    ['https://example.com/', 'GET to example.com, which is an allowed domain'],
    ['https://other.org/', 'GET to other.org, which is not an allowed domain'],
  ])('%s: %s', (url, reason) => expect(said(url)).toBe(reason))

  test('the methods there are', () => {
    expect(said('https://example.com/', 'TRACE')).toBe('method: "TRACE" is not one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE')
  })
})

describe('the gate says', () => {
  const reasonOf = async (...[name, input, fields, options]: [string, object?, object?, object?]) =>
    (await gateOf(fields, options).judge({ ...callOf(name), ...input })).reason
  test('why it was stopped, or that nobody said', async () => {
    expect(await reasonOf('time', {}, {}, { estop: () => '' })).toBe(
      'tools are stopped (no reason given); answer in text, and say that "estop --clear" lets them run again',
    )
  })

  test('which tools there are instead', async () => {
    const two = { tools: [tool('time'), tool('file_read')] }
    expect(await reasonOf('time', {}, { toolsAllow: ['file_read'] }, two)).toBe(
      'tool "time" is not in this channel\'s tools_allow; tools: file_read',
    )
    expect(await reasonOf('zzz', {}, {}, two)).toBe('unknown tool "zzz"; tools: time, file_read')
    expect(() => gateOf({}, { tools: [tool('a'), tool('b'), tool('a')] })).toThrow('two tools share a name: a, b, a')
    const parameters = { type: 'object' as const, properties: { a: { type: 'string', pattern: '(?=a)' } } }
    expect(() => gateOf({}, { tools: [{ ...tool('a'), parameters }] })).toThrow(
      'the schema of the tool "a" cannot be checked: the expression "(?=a)" cannot be used',
    )
  })

  test('what is wrong with arguments that are none', async () => {
    const rest = 'send one object such as {"key": "value"}'
    expect(await reasonOf('time', { malformed: '{"a":' })).toBe(`time: the arguments are not a JSON object: "{\\"a\\":"; ${rest}`)
    expect(await reasonOf('time', { input: [1] })).toBe(`time: the arguments are not a JSON object: [1]; ${rest}`)
    let deep: object = {}
    for (let level = 0; level < 50_000; level++) deep = { a: deep }
    expect(await reasonOf('time', { input: deep })).toBe(`time: the arguments are nested too deeply; ${rest}`)
  })

  test('what makes a call as risky as it is', async () => {
    expect(await reasonOf('time')).toBe('touches neither files, commands nor the network')
    expect(await reasonOf('file_read', { input: { path: 'a' } })).toBe('reads the workspace')
    const eager = tool('eager', { risk: 'high', touches: () => [{ kind: 'path', path: 'a', access: 'read' }] })
    expect(await reasonOf('eager', {}, { autonomy: 'full' }, { tools: [eager] })).toBe('eager is declared high risk')
  })
})
