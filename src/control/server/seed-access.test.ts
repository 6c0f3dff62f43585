import { expect, test } from 'bun:test'
import { HttpError } from '../../http/http-error.ts'
import { createSeedAccess } from './find-caller.ts'

const at = (address: string, headers: Record<string, string> = {}, secret = 's3cret') => ({
  secret,
  address,
  headers: new Headers(headers),
})

/** Returns the kind of the caller, or the refusal; and the addresses that were logged. */
function stage({ secret = 's3cret', from = [] as string[] }: { secret?: string; from?: string[] } = {}) {
  const logged: string[] = []
  const access = createSeedAccess({ secret, from, refused: (address, why) => void logged.push(`${address}: ${why}`) })
  const kind = (sender: Parameters<typeof access>[0]) => {
    try {
      return access(sender)?.kind
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      return `${error.status} ${error.message}`
    }
  }
  return { kind, logged }
}

test('the shared secret counts from this machine and the named networks alone; elsewhere the reason is answered, and logged once', () => {
  const { kind, logged } = stage({ from: ['10.17.0.0/16', 'fd00:7::/64'] })
  for (const address of ['192.0.2.1', '10.18.0.1', 'fd00:8::1', '::ffff:192.0.2.1', '', 'unknown', '127.0.0.1.evil']) {
    const reason = `the request comes from ${address || 'an unknown address'}`
    for (let twice = 0; twice < 2; twice += 1)
      expect(kind(at(address))).toBe(`403 the shared secret counts from this machine and the networks of --compat-from only: ${reason}`)
    expect(logged.filter((line) => line === `${address}: ${reason}`)).toHaveLength(1)
  }
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.9.9.9', '10.17.200.3', '::ffff:10.17.0.9', 'fd00:7::1'])
    expect([address, kind(at(address))]).toEqual([address, 'seed'])
})

test('another secret is none and gets no reason, and what a proxy passes on does not come from this machine', () => {
  const { kind, logged } = stage()
  for (const secret of ['', 's3cre', 's3cret ', 'S3CRET'])
    for (const address of ['127.0.0.1', '192.0.2.1']) expect(kind(at(address, {}, secret))).toBeUndefined()
  expect(logged).toEqual([])
  for (const name of [
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Real-IP',
    'Via',
    'CF-Connecting-IP',
    'True-Client-IP',
  ])
    expect(kind(at('127.0.0.1', { [name]: '127.0.0.1' }))).toContain(
      `a proxy passed the request on (it has the header ${name.toLowerCase()})`,
    )
  expect(kind(at('127.0.0.1', { accept: '*/*', 'x-request-id': '1' }))).toBe('seed')
})

test('without a secret nobody has it; a network or a secret that cannot be right is refused by name', () => {
  const refused = () => {}
  expect(createSeedAccess({ secret: undefined, from: [], refused })(at('127.0.0.1', {}, ''))).toBeUndefined()
  expect(createSeedAccess({ secret: '', from: [], refused })(at('127.0.0.1', {}, ''))).toBeUndefined()
  for (const network of ['10.0.0.0', '10.0.0.0/33', '10.0.0/8', 'all', '0.0.0.0/', 'fd00::/129'])
    expect(() => createSeedAccess({ secret: 'x', from: [network], refused })).toThrow(network)
  expect(() => createSeedAccess({ secret: 'two words', from: [], refused })).toThrow('CONTROLPLANE_SHARED_SECRET')
})
