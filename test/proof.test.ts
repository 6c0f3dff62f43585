/** What the record proves: what somebody altered is found and named by every check, and what a crash left is not called altered. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { oldHome, unpack } from './homes/unpack.ts'
import { type Nest, nest } from './support/cli.ts'

function alter(at: Nest, sql: string): void {
  using db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  expect(db.run(sql).changes).toBeGreaterThan(0)
}

const deep = (at: Nest, ...more: string[]) => at.run(['receipt', 'verify', '--deep', ...more])

test('a call whose process was killed is unfinished, not altered, until the next start gives it a result', async () => {
  using at = nest()
  unpack(oldHome, at)
  const { code, stdout, stderr } = await deep(at)
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^valid: \d+ receipts/)])
  expect(stderr).toMatch(/^unfinished: call \S+ \(shell\) of run \S+ began before its process died; the next start gives it a result\n$/)
  expect(JSON.parse((await deep(at, '--json')).stdout)).toMatchObject({ ok: true, deep: [], unfinished: [expect.any(String)] })
  expect((await at.run(['agent', '-m', 'hello'])).code).toBe(0)
  expect(await deep(at)).toMatchObject({ code: 0, stderr: '' })
})

test('a call whose result was taken out of the journal is altered, and not unfinished', async () => {
  using at = nest()
  unpack(oldHome, at)
  alter(at, 'DELETE FROM intents')
  expect(await deep(at)).toMatchObject({ code: 9, stdout: expect.stringContaining('began, and its result is gone') })
})
