/** A clock that is set back between turns and within one: order is by sequence, limits hold, nothing is lost, no yes comes to life again. */

import { afterEach, beforeEach, expect, setSystemTime, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { acting, callOf, runOf } from '../../src/memory/fixture.ts'
import { openMemory } from '../../src/memory/memory.ts'
import { executable } from '../support/cli.ts'

const day = 86_400_000
const at = { dir: '', cwd: '', home: '' }
beforeEach(() => {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-clock-'))
  Object.assign(at, { dir, cwd: join(dir, 'workspace'), home: join(dir, 'home') })
  mkdirSync(at.cwd)
  mkdirSync(at.home)
})
afterEach(() => {
  setSystemTime()
  rmSync(at.dir, { recursive: true, force: true })
})

/** Sets the clock back by so many days from the true time. */
const back = (days: number) => setSystemTime(new Date(performance.timeOrigin + performance.now() - days * day))

/** One turn in a program of its own, with a call and an answer. @returns what the model was shown */
async function turn(prompt: string, conversation: string): Promise<{ shown: string[]; conversation: string }> {
  const shown: string[] = []
  const model: ModelCall = async function* (messages) {
    if (messages.at(-1)?.role === 'user') {
      shown.push(...messages.flatMap((message) => (message.role === 'user' ? [message.content] : [])))
      yield { type: 'tool_use', name: 'time', input: {} }
    } else yield { type: 'text', content: `answer to ${prompt}` }
  }
  const agent = createAgent({ cwd: at.cwd, home: at.home, env: { HOME: at.dir }, modelCall: model, conversation })
  for await (const _ of agent.run(prompt));
  expect(agent.ending()?.code).toBe('answered')
  const id = agent.conversationId() ?? ''
  await agent.close()
  return { shown, conversation: id }
}

/** With the true clock: another process. */
async function braidclaw(...args: string[]) {
  const env = { HOME: at.dir, BRAIDCLAW_HOME: at.home, PATH: process.env.PATH ?? '' }
  const child = Bun.spawn([executable, ...args], { cwd: at.cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, stdout, stderr }
}

test('the model is shown the turns in the order in which they were, whatever the clock said', async () => {
  const { conversation } = await turn('first', 'new')
  for (const [days, prompt] of [
    [1, 'second'],
    [3, 'third'],
    [2, 'fourth'],
  ] as const) {
    back(days)
    await turn(prompt, conversation)
  }
  setSystemTime()
  expect((await turn('fifth', conversation)).shown).toEqual(['first', 'second', 'third', 'fourth', 'fifth'])
})

test('the latest conversation is the one used last, not the one with the latest date', async () => {
  await turn('in the future', 'new')
  back(2)
  const { conversation } = await turn('used last', 'new')
  expect((await turn('go on', 'latest')).conversation).toBe(conversation)
  setSystemTime()
  expect(JSON.parse((await braidclaw('memory', 'show', 'last', '--json')).stdout)[0]).toMatchObject({ content: 'used last' })
  expect(JSON.parse((await braidclaw('memory', 'list', '--json')).stdout)[0]).toMatchObject({ title: 'used last' })
})

test('receipts chain on over dates that go back, and all is found, shown and exported', async () => {
  await turn('aardvark today', 'new')
  back(400)
  await turn('aardvark long ago', 'new')
  setSystemTime()
  expect(await braidclaw('receipt', 'verify', '--deep')).toMatchObject({ code: 0, stderr: '' })
  const { receipts } = { receipts: JSON.parse((await braidclaw('receipt', 'list', '--json')).stdout) }
  expect(receipts.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2])
  expect(receipts[0].timestamp > receipts[1].timestamp).toBe(true)
  const found = JSON.parse((await braidclaw('memory', 'search', '--json', 'aardvark')).stdout)
  expect(new Set(found.map(({ snippet }: { snippet: string }) => snippet.replace(/[^a-z ]/g, '')))).toContain('aardvark long ago')
  const prompts = (await braidclaw('memory', 'export')).stdout.split('\n').filter((line) => line.includes('"role":"user"'))
  expect(prompts.map((line) => JSON.parse(line).content)).toEqual(['aardvark today', 'aardvark long ago'])
})

test('the time limit of a run holds when the clock is set back meanwhile', async () => {
  writeFileSync(join(at.home, 'config.toml'), '[limits]\nmax_run_seconds = 0.2\n')
  const hangs: ModelCall = async function* (_messages, _tools, signal) {
    back(1)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    yield { type: 'text', content: 'late' }
  }
  const agent = createAgent({ cwd: at.cwd, home: at.home, env: { HOME: at.dir }, modelCall: hangs })
  for await (const _ of agent.run('go'));
  expect(agent.ending()?.code).toBe('timeout')
  await agent.close()
})

test('a yes from a time that has not come yet, or that is over, cannot be used', () => {
  const clock = { now: 10 * day }
  const opened = openMemory({ path: join(at.home, 'memory.sqlite'), log: () => {}, now: () => clock.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { approvals, close } = opened.memory
  const { call, judgement } = acting(callOf('a'))
  const question = { type: 'gate.open' as const, id: call.id, call, judgement }
  const id = approvals.create({ run: runOf(1), gate: question, expires: clock.now + 600_000 })
  expect(approvals.decide({ id, allow: true, by: 'test' })).toEqual({ ok: true })
  clock.now = 9 * day
  expect(approvals.consume({ id, plan: judgement.plan }).ok).toBe(false)
  const other = approvals.create({ run: runOf(2), gate: question, expires: clock.now + 600_000 })
  clock.now = 8 * day
  expect(approvals.list({ state: 'open' })).toEqual([])
  expect(approvals.decide({ id: other, allow: true, by: 'test' }).ok).toBe(false)
  clock.now = 10 * day
  expect(approvals.consume({ id, plan: judgement.plan })).toEqual({ ok: true })
  close()
})
