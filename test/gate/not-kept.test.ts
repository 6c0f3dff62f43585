/** Changes that wait for a yes and cannot be kept on disk: nothing may say that they still wait. */

import { test as always, expect } from 'bun:test'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

test('the receipt, the question and the model are told that they were dropped, and why nobody can say yes later', async () => {
  using at = home()
  const script = [call('shell', { command: 'echo x > made.txt' }), { text: 'done' }]
  mkdirSync(join(at.home, '.braidclaw'), { recursive: true })
  writeFileSync(join(at.home, '.braidclaw/changes'), 'a file in the place of the folder of change sets')
  const { code, stderr } = await turn(at, script, ['--json'], { through: alone })
  expect([code, stderr]).toEqual([4, expect.stringContaining('could not be kept')])
  rmSync(join(at.home, '.braidclaw/changes'))
  expect(existsSync(join(at.workspace, 'made.txt'))).toBe(false)
  const [receipt] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
  expect(receipt).toMatchObject({ tool: 'shell', status: 'denied', changes: 'dropped' })
  expect((await at.run(['approvals', 'list'])).stdout).toBe('')
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
})
