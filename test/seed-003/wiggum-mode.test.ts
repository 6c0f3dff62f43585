/**
 * Wiggum mode of specification 003 in the agent itself: the words of its listings, `wiggumLoop`, `wiggumGuard` and `setMode`, over the threads
 * of the product. The listing as a program of its own is in agent-loop.test.ts.
 */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { wiggumGuard, wiggumLoop } from '../../src/runtime/behaviours/wiggum/wiggum-loop.ts'
import { program } from '../../src/runtime/program.ts'
import { collect, stage } from '../support/agent.ts'

/** Each iteration generates a command, executes it and checks; the check passes at the third time. */
function cooking(passesAt = 3) {
  let times = 0
  const replies = ['one', 'two', 'three'].flatMap((id) => [{ calls: [{ id }] }, { text: `did ${id}` }])
  const check = async () => ({ pass: ++times >= passesAt, evidence: `time ${times}` })
  return stage({ replies, checks: { names: ['make check'], findings: [check] } })
}

test('the run has a loop and a guard, and both are part of every program', () => {
  const names = program({ maxToolRounds: 1, maxParallel: 1 }).map(({ name }) => name)
  expect([wiggumLoop.name, wiggumGuard.name].map((name) => names.includes(name))).toEqual([true, true])
})

test('wiggum runs until the check passes, not once: generate, execute, check, repeat', async () => {
  const { agent, acted, checked, log } = cooking()
  expect(await agent.setMode({ newMode: 'wiggum', maxIterations: 1000 })).toBeUndefined()
  const events = await collect(agent, 'Build it')
  expect([acted, checked.length]).toEqual([['one', 'two', 'three'], 3])
  const iteration = (id: string) => ['model.done', `intent ${id}`, 'tool.done', 'model.done', 'check.done']
  expect(log).toEqual(['run.start', ...iteration('one'), 'retry', ...iteration('two'), 'retry', ...iteration('three'), 'finish answered'])
  expect(events.flatMap((event) => (event.type === 'iteration' ? [event.count] : []))).toEqual([1, 2, 3])
  expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'end_turn', result: 'did three', iterations: 3 })
})

test.each([1, 2])('at a limit of %d iterations the guard ends it with a done, and its code says so', async (maxIter) => {
  const { agent, checked } = cooking()
  await agent.setMode({ newMode: 'wiggum', maxIter })
  const events = await collect(agent, 'Build it')
  expect([checked.length, agent.ending()?.code]).toEqual([maxIter, 'limit'])
  expect(events.at(-1)).toEqual({ type: 'done', stopReason: 'error', result: `did ${['one', 'two'][maxIter - 1]}`, iterations: maxIter })
})

test('set back to structured, a prompt is answered without checks', async () => {
  const { agent, checked } = cooking(1)
  await agent.setMode({ newMode: 'wiggum' })
  await agent.setMode({ newMode: 'structured' })
  const events = await collect(agent, 'Hello')
  expect([checked, events.some(({ type }) => type === 'iteration')]).toEqual([[], false])
})

test('the library says why it rejects the mode, before the first run and after the end', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-wiggum-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  const modelCall: ModelCall = async function* () {
    yield { type: 'text', content: 'hello' }
  }
  const agent = createAgent({ cwd, home: join(dir, 'home'), env: { HOME: dir }, modelCall })
  const why = 'modes: wiggum mode needs checks that end a run, and this conversation has none'
  expect(await agent.setMode({ newMode: 'wiggum', maxIterations: 100 })).toBe(why)
  expect(await agent.setMode({ newMode: 'structured' })).toBeUndefined()
  const events = []
  for await (const event of agent.run('hi')) events.push(event.type)
  expect(events.at(-1)).toBe('done')
  expect(await agent.setMode({ newMode: 'wiggum' })).toBe(why)
  await agent.close()
  expect(await agent.setMode({ newMode: 'structured' })).toBe('modes: this agent is closed')
  rmSync(dir, { recursive: true, force: true })
})
