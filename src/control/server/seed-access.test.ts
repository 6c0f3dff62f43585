import { expect, test } from 'bun:test'
import { createSeedAccess } from './find-caller.ts'

const at = (address: string, headers: Record<string, string> = {}, secret = 's3cret') => ({
  secret,
  address,
  headers: new Headers(headers),
})

test('the shared secret counts from this machine and the named networks alone', () => {
  const access = createSeedAccess({ secret: 's3cret', from: ['10.17.0.0/16', 'fd00:7::/64'] })
  for (const address of ['192.0.2.1', '10.18.0.1', 'fd00:8::1', '::ffff:192.0.2.1', '', 'unknown', '127.0.0.1.evil'])
    expect([address, access(at(address))]).toEqual([address, undefined])
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.9.9.9', '10.17.200.3', '::ffff:10.17.0.9', 'fd00:7::1'])
    expect([address, access(at(address))?.kind]).toEqual([address, 'seed'])
})

test('another secret is none, and what a proxy passes on does not come from this machine', () => {
  const access = createSeedAccess({ secret: 's3cret', from: [] })
  for (const secret of ['', 's3cre', 's3cret ', 'S3CRET']) expect(access(at('127.0.0.1', {}, secret))).toBeUndefined()
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
    expect([name, access(at('127.0.0.1', { [name]: '127.0.0.1' }))]).toEqual([name, undefined])
  expect(access(at('127.0.0.1', { accept: '*/*', 'x-request-id': '1' }))?.kind).toBe('seed')
})

test('without a secret nobody has it; a network or a secret that cannot be right is refused by name', () => {
  expect(createSeedAccess({ secret: undefined, from: [] })(at('127.0.0.1', {}, ''))).toBeUndefined()
  expect(createSeedAccess({ secret: '', from: [] })(at('127.0.0.1', {}, ''))).toBeUndefined()
  for (const network of ['10.0.0.0', '10.0.0.0/33', '10.0.0/8', 'all', '0.0.0.0/', 'fd00::/129'])
    expect(() => createSeedAccess({ secret: 'x', from: [network] })).toThrow(network)
  expect(() => createSeedAccess({ secret: 'two words', from: [] })).toThrow('CONTROLPLANE_SHARED_SECRET')
})
