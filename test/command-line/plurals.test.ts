/** One of a thing is not several. */

import { expect, test } from 'bun:test'
import { call, home, turn } from '../support/turns.ts'

test('one run with one call, and then a second one', async () => {
  using at = home()
  const reads = [call('time', {}), { text: 'Now.' }]
  const said = async (...args: string[]) => {
    const { stdout, stderr } = await at.run(args)
    return `${stdout}${stderr}`
  }
  await turn(at, reads)
  expect(await said('receipt', 'verify')).toStartWith('valid: 1 receipt; ')
  expect(await said('run', 'show', 'last')).toMatch(/model\.done 1 call\n[\s\S]*model\.done 0 calls\n/)
  expect(await said('replay', 'last', '--policy', `${at.home}/.braidclaw/config.toml`)).toContain('0 of 1 call would')
  await turn(at, reads)
  expect(await said('receipt', 'verify')).toStartWith('valid: 2 receipts; ')
  expect(await said('rebuild')).toStartWith('rebuilt: 8 turns from the journal\nequal: 8 turns, ')
  expect(await said('memory', 'clear', '--yes')).toBe('forgot 2 conversations (8 turns); receipts stay\n')
  await turn(at, [{ text: 'Hello.' }])
  expect(await said('memory', 'clear', '--yes')).toBe('forgot 1 conversation (2 turns); receipts stay\n')
})
