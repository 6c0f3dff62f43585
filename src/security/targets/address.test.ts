import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { judgeAddress, judgeConnection, parseAddress } from './address.ts'

const refused = [
  ...[
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '100.127.255.255',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.255',
  ],
  ...[
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.19.255.255',
  ],
  ...['198.51.100.7', '203.0.113.9', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '168.63.129.16'],
  ...[
    '::',
    '::1',
    '::ffff:8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::8.8.8.8',
    '::ffff:0:8.8.8.8',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::1',
    '100::1',
  ],
  ...['2001::1', '2001:0:4136:e378::1', '2001:2::1', '2001:10::1', '2001:20::1', '2001:db8::1', '2002:7f00:1::', '2002::1', '3fff::1'],
  ...['fc00::1', 'fd00:ec2::254', 'fe80::1', 'febf::1', 'fec0::1', 'ff02::1', '4000::1', '5f00::1', 'e000::1'],
]
test.each(refused)('%s is refused', (ip) => expect(judgeAddress(ip)).toMatchObject({ ok: false, rule: 'url.private_address' }))

const malformed = [
  '',
  ' ',
  '1',
  '1.2.3',
  '1.2.3.4.5',
  '01.2.3.4',
  '1.2.3.256',
  '0x7f.0.0.1',
  '2130706433',
  '1.2.3.4 ',
  '1.2.3.-4',
  '１.2.3.4',
  'localhost',
  'fe80::1%eth0',
]
const malformed6 = [
  '[2606::1]',
  ':',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7::8:9',
  '12345::',
  'g::',
  '::1.2.3',
  '::1.2.3.4:5',
  '1:2:3:4:5:6:7:1.2.3.4',
  '2606:4700::1/64',
  ':1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8::',
]
test.each([...malformed, ...malformed6])('%j is no address and refused', (ip) => {
  expect(parseAddress(ip)).toBeUndefined()
  expect(judgeAddress(ip)).toMatchObject({ ok: false, rule: 'url.private_address' })
})

const open = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '2001:4860:4860::8888',
  '2003::1',
]
test.each(open)('%s is public', (ip) => expect(judgeAddress(ip)).toEqual({ ok: true }))

describe('an address that the operator listed', () => {
  const allowedDomains = ['127.0.0.1', '[::1]', 'example.com']
  test('is let through as the host itself, in any plain spelling', () => {
    expect(judgeConnection({ host: '127.0.0.1', ip: '127.0.0.1', allowedDomains })).toEqual({ ok: true })
    expect(judgeConnection({ host: '[0:0::1]', ip: '::1', allowedDomains })).toEqual({ ok: true })
  })
  test('is still refused as what another name resolves to', () => {
    expect(judgeConnection({ host: 'example.com', ip: '127.0.0.1', allowedDomains }).ok).toBe(false)
    expect(judgeConnection({ host: '127.0.0.1', ip: '127.0.0.2', allowedDomains }).ok).toBe(false)
    expect(judgeConnection({ host: '127.0.0.2', ip: '127.0.0.2', allowedDomains }).ok).toBe(false)
  })
})

const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), { minLength: 8, maxLength: 8 })

/** Every spelling of the eight groups: leading zeros, case, one run of zeros compressed, the last two groups dotted. */
function spelling(words: number[], how: { pad: boolean; upper: boolean; from: number; to: number; dotted: boolean }): string {
  const texts = words.map((word) => word.toString(16).padStart(how.pad ? 4 : 1, '0')).map((text) => (how.upper ? text.toUpperCase() : text))
  const [high = 0, low = 0] = words.slice(6)
  const tail = how.dotted ? [`${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`] : texts.slice(6)
  const all = [...texts.slice(0, 6), ...tail]
  const [from, to] = [Math.min(how.from, how.to), Math.min(Math.max(how.from, how.to), 6)]
  const zeros = words.slice(from, to)
  if (zeros.length === 0 || zeros.some((word) => word !== 0)) return all.join(':')
  return `${all.slice(0, from).join(':')}::${all.slice(to).join(':')}`
}

test('every spelling of an IPv6 address is the same address', () => {
  const how = fc.record({
    pad: fc.boolean(),
    upper: fc.boolean(),
    from: fc.integer({ min: 0, max: 6 }),
    to: fc.integer({ min: 0, max: 6 }),
    dotted: fc.boolean(),
  })
  fc.assert(
    fc.property(groups, how, (words, style) => {
      const value = words.reduce((sum, word) => (sum << 16n) | BigInt(word), 0n)
      expect(parseAddress(spelling(words, style))).toEqual({ bits: 128, value })
    }),
    { numRuns: 2000 },
  )
})

test('an IPv4 address hidden in any tunnel is refused, public or not', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.constantFrom('::ffff:', '::', '64:ff9b::', '::ffff:0:', '2002:0::', 'fe80::'), (ip, tunnel) => {
      expect(judgeAddress(`${tunnel}${ip}`).ok).toBe(false)
    }),
  )
})

test('any text at all gets a verdict', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.ipV4Extended(), fc.ipV6()), (text) => expect(typeof judgeAddress(text).ok).toBe('boolean')),
  )
})
