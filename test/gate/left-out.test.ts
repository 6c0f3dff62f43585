/** What cannot enter the workspace is left out and said; the rest of the change set is applied. */

import { test as always, expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

test('a pipe is left out, the file beside it is applied, and the model is told', async () => {
  using at = home()
  const script = [call('shell', { command: 'mkfifo pipe; echo ok > file' }), { text: 'it said: {{last_tool_result}}' }]
  const { code, stdout } = await turn(at, script, ['--autonomy', 'full'])
  expect([code, readdirSync(at.workspace)]).toEqual([0, ['file']])
  expect(stdout).toContain('pipes, sockets and devices never enter the workspace: 1 left out')
  expect(await at.run(['receipt', 'verify', '--deep'])).toMatchObject({ code: 0 })
  expect((await at.run(['undo'])).code).toBe(0)
  expect(readdirSync(at.workspace)).toEqual([])
})
