/** The own runner: a conversation in the worker's process, on a copy, paid by the control plane, with an operator for what needs a yes. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownRunner, ownRunnerProblem } from '../../../src/control/runners/own-runner.ts'
import { type ModelCall, modelCallProvider } from '../../../src/providers/model-call.ts'
import { calling, says } from '../../support/host.ts'
import { planeAndPlaceOfEachTest } from './plane-and-place.ts'
import { anna } from './plane-port.ts'

const given = planeAndPlaceOfEachTest()

/** Carries out one task with this model. */
async function work(model: ModelCall, more: { readonly budget?: number } = {}) {
  const { plane, place } = given()
  const port = (await plane.fleet.list(anna)).length === 0 ? await plane.agent() : plane.port((await plane.fleet.newKey(anna, 'a1')).key)
  if ((await plane.tasks.list(anna, { limit: 1, order: 'newest' })).tasks.length === 0)
    await plane.add({ title: 'Write it down', ...(more.budget === undefined ? {} : { budget_tokens: more.budget }) })
  const run = ownRunner({ host: place.host, setup: place.host.setup, agentId: 'a1', provider: modelCallProvider(model) })
  const end = await place.worker(port, '', { once: true, runner: { name: 'own', run } }).run()
  return { plane, place, end }
}

test('the changes of its tools are made in a copy and wait for a review', async () => {
  const { plane, place, end } = await work(calling('file_write', { path: 'new.md', content: 'written\n' }))
  expect(place.said.join('\n')).toContain('changes wait for a review')
  expect(end).toBe('completed')
  expect(() => readFileSync(join(place.workspace, 'new.md'))).toThrow()
  const { store } = await place.host.changes()
  const [set] = store.list()
  expect(set).toMatchObject({ state: 'pending', workspace: place.workspace, about: { run: 'RUN-001' }, count: 1 })
  expect(await store.apply({ id: set?.id ?? '' })).toMatchObject({ ok: true })
  expect(readFileSync(join(place.workspace, 'new.md'), 'utf8')).toBe('written\n')
  expect(await plane.run()).toMatchObject({ state: 'completed', changes: 'waiting' })
  expect(await plane.log()).toContain('> file_write')
})

test('its model calls are paid: what the control plane settled is what the task cost', async () => {
  const { plane } = await work(says('an answer'))
  const { tokens_used } = await plane.task('TASK-001')
  expect(tokens_used).toBeGreaterThan(0)
  expect(plane.line.calls.filter((name) => name === 'reserve')).toHaveLength(1)
  expect((await plane.budget.get(anna)).spent_today).toBe(tokens_used)
  expect((await plane.budget.get(anna)).reserved).toBe(0)
})

test('a task whose budget is spent in the middle waits for more', async () => {
  const { plane, end } = await work(calling('file_list', { path: '.' }), { budget: 2_500 })
  expect(end).toBe('waiting')
  expect(await plane.task('TASK-001')).toMatchObject({ status: 'budget_blocked', tokens_used: 2_500 })
})

test('a task that needs more than its whole budget fails with the reason, and the model is not asked', async () => {
  const asked = { count: 0 }
  const { plane, end } = await work(
    async function* () {
      asked.count += 1
      yield { type: 'text', content: 'never' }
    },
    { budget: 10 },
  )
  expect(end).toBe('failed')
  expect(asked.count).toBe(0)
  expect(await plane.task('TASK-001')).toMatchObject({ status: 'pending', error: expect.stringContaining('more than the 10 left') })
})

test('what needs a yes waits for an operator, and runs once after the yes', async () => {
  const model = calling('http', { url: 'http://example.invalid/status', method: 'POST' })
  const first = await work(model)
  expect(first.end).toBe('waiting')
  const { plane } = first
  expect(await plane.task('TASK-001')).toMatchObject({ status: 'awaiting_approval' })
  const { approvals } = await plane.approvals.list(anna, { limit: 10 })
  expect(approvals).toMatchObject([{ task_id: 'TASK-001', state: 'pending', agent_id: 'a1', details: { tool: 'http' } }])
  await plane.approvals.decide(anna, approvals[0]?.approval_id ?? '', { decision: 'approve', note: 'fine' })
  expect(await plane.task('TASK-001')).toMatchObject({ status: 'pending' })
  expect((await work(model)).end).toBe('completed')
  expect(await plane.approvals.get(anna, approvals[0]?.approval_id ?? '')).toMatchObject({ state: 'used' })
})

test('after the yes a worker that started later goes on in its conversation and its copy', async () => {
  const { plane, place } = given()
  const seen: string[] = []
  /** Writes a file, then asks for something that needs a yes, then says what it remembers. */
  const model: ModelCall = async function* (messages, _tools, signal, about) {
    const texts = messages.map((message) => (message.role === 'tool' ? message.content : ''))
    const asked = messages.filter(({ role }) => role === 'user').length
    seen.push(`${asked} ${texts.filter((text) => text !== '').length}`)
    if (texts.every((text) => text === '')) yield* calling('file_write', { path: 'new.md', content: 'kept\n' })([], [], signal, about)
    else if (messages.at(-1)?.role === 'tool' && asked === 1)
      yield* calling('http', { url: 'http://example.invalid/', method: 'POST' })([], [], signal, about)
    else yield { type: 'text', content: 'all done' }
  }
  expect((await work(model)).end).toBe('waiting')
  const { approvals } = await plane.approvals.list(anna, { limit: 10 })
  await plane.approvals.decide(anna, approvals[0]?.approval_id ?? '', { decision: 'approve', note: 'go' })
  expect((await work(model)).end).toBe('completed')
  expect(seen.at(-1)).toStartWith('2 ')
  const { store } = await place.host.changes()
  const set = store.show(store.list()[0]?.id ?? '')
  expect(Buffer.from(set?.read('new.md', 'after', 100) ?? []).toString()).toBe('kept\n')
})

test('the offline helper is no model: the worker says what to do', () => {
  expect(ownRunnerProblem(given().place.host.setup)).toMatch(/needs a model.*braidclaw onboard/)
})
