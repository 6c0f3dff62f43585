/** Without a key the hash of a receipt is the one of specification 001, and both verifiers still find what was altered. */

import { afterAll, expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { isDeep } from '../../test/support/tier.ts'
import { sha256 } from '../kit/sha256.ts'
import { createHome, type Home } from './fixture.ts'
import { edit, lines, recompute, testBoth } from './tampering.fixture.ts'

const made: Home[] = []
afterAll(() => {
  for (const home of made) home.remove()
})

function another(keyless = true): Home {
  const home = createHome(undefined, keyless)
  made.push(home)
  home.fill(5)
  return home
}

/** Returns canonical JSON of a flat object, written here a second time. */
function canonical(receipt: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(receipt).sort(([a], [b]) => (a < b ? -1 : 1))))
}

test('receipt_hash = SHA256(canonical_json(receipt_without_receipt_hash))', () => {
  for (const keyless of [true, false]) {
    for (const line of lines(another(keyless))) {
      const { receipt_hash, ...rest } = JSON.parse(line)
      expect(receipt_hash === sha256(canonical(rest))).toBe(keyless)
      const { mac, ...unsealed } = rest
      expect(receipt_hash).toBe(sha256(canonical(unsealed)))
      expect(mac === undefined).toBe(keyless)
    }
  }
})

test('the key file says that there is none, and counts as one: a key that is lost, or switched on later, changes nothing', () => {
  const home = another()
  expect(readFileSync(home.paths.key, 'utf8')).toBe('none\n')
  expect(statSync(home.paths.key).mode & 0o777).toBe(0o600)
  const again = createHome(home.folder, false)
  expect(again.key()).toHaveLength(0)
})

const put = '0'.repeat(64)
testBoth(
  [
    { name: 'nothing altered, without a key', do: () => ({}), record: undefined },
    { name: 'a result altered', do: ({ home }) => edit(home, 2, (line) => line.replace('allowed', 'denied')), record: 2, kind: 'hash' },
    {
      name: 'a mac slipped in',
      do: ({ home }) => edit(home, 3, (line) => line.replace('"previous_hash"', `"mac":"${put}","previous_hash"`)),
      record: 3,
      kind: 'mac',
    },
    {
      name: 'every hash recomputed from receipt 3 on: the head file and the checkpoint know the old end',
      do: ({ home }) => recompute(home, 3, { key: new Uint8Array(0), change: (receipt) => ({ ...receipt, tool: 'time' }) }),
      record: 5,
      kind: 'rewritten',
    },
    { name: 'a key put in place of none', do: ({ home }) => writeFileSync(home.paths.key, `${'ab'.repeat(32)}\n`), record: 1, kind: 'mac' },
  ],
  { another, isDeep },
)
