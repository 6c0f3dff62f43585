/** Wiggum runs that were killed, stopped or left by their provider go on: no iteration is lost, and nothing happens twice. */

import { test as always, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { check, lastRun, mend, mended, project, reportOf, said, shell } from './wiggum.fixture.ts'

const test = always.if(needs('bwrap'))
const lib = (made: Nest) => readFileSync(join(made.workspace, 'src/lib.sh'), 'utf8')
const begin = (made: Nest, responses: readonly object[]) =>
  made.start(['agent', '--wiggum', '--check', check, '--output-format', 'stream-json', 'mend it'], {
    env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture(responses) },
  })
const goOn = (made: Nest, responses: readonly object[], words = ['--wiggum', '-c']) =>
  made.run(['agent', ...words], { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture(responses) } })

test('after kill -9 the next process goes on in the same copy, at the same iteration', async () => {
  using made = project()
  const first = [said(), { tool_calls: [shell('echo kept > notes.md')] }, { ...said(), delay_ms: 60_000 }]
  const running = begin(made, first)
  await running.prints('tool_result')
  process.kill(running.pid, 'SIGKILL')
  await running.result
  const { code, stderr, stdout } = await goOn(made, [{ tool_calls: [mend] }, said('mended')], ['--continue-turn'])
  expect({ code, stderr, stdout }).toMatchObject({ code: 0, stdout: 'mended\n' })
  expect(stderr).toContain('iteration 2 of 20')
  expect([lib(made), readFileSync(join(made.workspace, 'notes.md'), 'utf8')]).toEqual([mended, 'kept\n'])
  const report = await reportOf(made)
  expect([report.runs.length, report.iterations.map(({ count }) => count)]).toEqual([2, [1, 2]])
})

test('Ctrl-C ends it with 130 and says how it goes on; while it runs, no other process takes it', async () => {
  using made = project()
  const running = begin(made, [{ tool_calls: [mend] }, { ...said(), delay_ms: 60_000 }])
  await running.prints('tool_result')
  const second = await goOn(made, [said()])
  expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('another process works on the run')])
  process.kill(running.pid, 'SIGINT')
  const stopped = await running.result
  expect([stopped.code, lib(made) === mended]).toEqual([130, false])
  const conversation = /to go on: braidclaw agent --wiggum --resume (\S+)/.exec(stopped.stderr)?.[1] ?? ''
  expect(stopped.stderr).toContain(`braidclaw changes apply ${lastRun(made)}/result`)
  const done = await goOn(made, [said('mended')], ['--wiggum', '--resume', conversation])
  expect({ code: done.code, lib: lib(made) }).toEqual({ code: 0, lib: mended })
  const over = await goOn(made, [said()], ['--wiggum', '--resume', conversation])
  expect([over.code, over.stderr]).toEqual([1, expect.stringContaining('is over')])
})

test('a server goes on with it at its start', async () => {
  using made = project()
  const running = begin(made, [{ tool_calls: [mend] }, { ...said(), delay_ms: 60_000 }])
  await running.prints('tool_result')
  process.kill(running.pid, 'SIGKILL')
  await running.result
  const server = made.start(['serve', '--port', '0'], { cwd: made.home, env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture([said('mended')]) } })
  await server.says('wiggum run ended')
  process.kill(server.pid, 'SIGTERM')
  await server.result
  expect([lib(made), (await reportOf(made)).ending.code]).toEqual([mended, 'answered'])
})
