/** `doctor` on the home, the workspace and the record: each line is broken once, and says what to do. */

import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const lines = async (at: Nest, env = {}) => (await at.run(['doctor'], { env, timeoutMs: 30_000 })).stdout

test('a home that others may read', async () => {
  using at = home()
  chmodSync(join(at.home, '.braidclaw'), 0o755)
  expect(await lines(at)).toContain(`✗ home        others may read ${at.home}/.braidclaw; run: chmod 700 ${at.home}/.braidclaw\n`)
})

test('a workspace that is gone', async () => {
  using at = home()
  rmSync(at.workspace, { recursive: true })
  const { code, stdout } = await at.run(['doctor'], { cwd: at.dir, timeoutMs: 30_000 })
  expect([code, /^✗ workspace .*does not exist; create it/m.test(stdout)]).toEqual([1, true])
})

test('a key that is missing', async () => {
  using at = home()
  const found = await lines(at, { BRAIDCLAW_PROVIDER: 'openai_compatible' })
  expect(found).toMatch(
    /^✗ provider \* +openai_compatible .*OPENAI_API_KEY is not set\n {14}export OPENAI_API_KEY=…, or store it: braidclaw login openai_compatible$/m,
  )
})

test.if(needs('bwrap'))('a tool that cannot be offered', async () => {
  using at = home()
  const tool = join(at.home, '.braidclaw/tools/broken')
  mkdirSync(join(at.home, '.braidclaw/tools'))
  writeFileSync(tool, '#!/bin/sh\nexit 4\n', { mode: 0o755 })
  expect(await lines(at)).toContain(`· tools       ${tool} is not offered: --describe ended with exit code 4\n`)
})

test('an altered receipt; and how to make a backup', async () => {
  using at = home()
  await turn(at, [call('time', {}), { text: 'x' }])
  expect(await lines(at)).toMatch(/^· backup +none is made by itself .*\n {14}make one now.*: braidclaw home backup /m)
  const log = join(at.home, '.braidclaw/tool_receipts.log')
  writeFileSync(log, readFileSync(log, 'utf8').replace('"time"', '"tame"'))
  expect(await lines(at)).toMatch(
    /^✗ receipts .*\n {14}all that is wrong: braidclaw receipt verify --deep\n {14}a copy from before: braidclaw home restore/m,
  )
})
