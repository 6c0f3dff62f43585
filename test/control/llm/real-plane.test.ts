/** The pass-through of a real control plane: its ledger has what models cost, and its budgets, leases and keys stop them. */

import { afterEach, expect, test } from 'bun:test'
import { dialects, upTo } from '../../support/dialects.ts'
import { type Asked, type Fake, sends, startFake } from '../../support/vendor-fake.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const ask = { model: 'm', max_tokens: 500, messages: [{ role: 'user', content: 'hi' }] }

type Started = {
  readonly control: ControlUnderTest
  readonly vendor: Fake
  /** The run token of a claimed task. */
  readonly token: string
  readonly taskId: string
  post(path: string, body?: object, token?: string): Promise<Response>
}

async function started(answer: (asked: Asked) => Response, draft: object = {}): Promise<Started> {
  const vendor = startFake(answer)
  open.push(vendor.stop)
  const names = {
    CONTROLPLANE_OPENAI_URL: vendor.url,
    CONTROLPLANE_ANTHROPIC_URL: vendor.url,
    CONTROLPLANE_ANTHROPIC_KEY: 'sk-ant-vendor-key',
  }
  const control = await controlServer({ env: names })
  open.push(() => control[Symbol.asyncDispose]())
  const key = await control.addAgent('sysadmin')
  await control.ask('tasks', { body: { title: 'Check if db jail is running', role: 'sysadmin', ...draft } })
  const claim = await control.ask('tasks/claim', { token: key, body: { role: 'sysadmin', agent_id: 'sysadmin' } })
  expect(claim.status).toBe(200)
  const post = (path: string, body: object = ask, token: string = claim.body.run_token) =>
    fetch(`${control.url}/api/controlplane/llm/v1${path}`, {
      method: 'POST',
      headers: { 'x-api-key': token, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  return { control, vendor, token: claim.body.run_token, taskId: claim.body.task.task_id, post }
}

const whole = ({ path }: Asked) => new Response(dialects.find((one) => path === `/v1${one.path}`)?.whole({ text: ['Hello'] }))

test('an operator, an agent, the shared secret and a stranger may not ask a model', async () => {
  const { control, post, vendor } = await started(whole)
  const agent = await control.addAgent('other')
  const answers = await Promise.all(
    [control.operator, agent, control.sharedSecret, 'cpr_stranger'].map((token) => post('/messages', ask, token)),
  )
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 401, 401])
  for (const answer of answers) expect(await answer.text()).toStartWith('{"type":"error","error":{')
  expect(vendor.asked).toEqual([])
})

test('what a call costs stands in the budget of the day, of the role, of the agent, and at the task', async () => {
  const { control, post, taskId } = await started(whole)
  expect((await post('/messages')).status).toBe(200)
  expect((await post('/chat/completions')).status).toBe(200)
  const budget = (await control.ask('budget')).body
  expect([budget.spent_today, budget.reserved, budget.roles.sysadmin.spent, budget.agents.sysadmin.spent]).toEqual([240, 0, 240, 240])
  expect((await control.ask(`tasks/${taskId}`)).body.tokens_used).toBe(240)
  expect(control.errors).toEqual([])
})

test('a task whose budget is used up waits; its run is refused with 402 each time, and goes on when the limit is raised', async () => {
  const { control, post, taskId, vendor } = await started(whole, { budget_tokens: 600 })
  const statuses: number[] = []
  for (let call = 0; call < 6; call += 1) statuses.push((await post('/messages')).status)
  expect(statuses.slice(0, 2)).toEqual([200, 200])
  expect(statuses.slice(-2)).toEqual([402, 402])
  const task = (await control.ask(`tasks/${taskId}`)).body
  expect(task.status).toBe('budget_blocked')
  expect(task.tokens_used).toBe(120 * vendor.asked.length)
  expect(task.tokens_used).toBeLessThanOrEqual(600)
  expect((await control.ask('budget')).body.reserved).toBe(0)
  await control.ask(`tasks/${taskId}`, { method: 'PATCH', body: { budget_tokens: 6_000 } })
  expect((await control.ask(`tasks/${taskId}`)).body.status).toBe('pending')
})

test.each([
  ['the task is cancelled', (control: ControlUnderTest, taskId: string) => control.ask(`tasks/${taskId}/cancel`, { body: { note: '' } })],
  ['the keys of the agent are revoked', revokeKeys],
  ['the agent is removed', (control: ControlUnderTest) => control.ask('agents/sysadmin', { method: 'DELETE' })],
])('when %s, a stream ends soon', async (_, happens) => {
  const { control, post, taskId, vendor } = await started(() => sends(dialects[1] ? upTo(dialects[1], 'Hel') : [], 'hold'))
  const answer = await post('/messages', { ...ask, stream: true })
  const reader = answer.body?.getReader()
  await reader?.read()
  await happens(control, taskId)
  let rest = ''
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) rest += new TextDecoder().decode(piece.value)
  await vendor.hungUp
  expect(rest).toContain('event: error')
  const { reserved, spent_today } = (await control.ask('budget')).body
  expect(reserved).toBe(0)
  expect(spent_today).toBeGreaterThanOrEqual(101)
  expect((await post('/messages')).status).toBeOneOf([401, 409])
})

async function revokeKeys(control: ControlUnderTest): Promise<void> {
  const keys = (await control.ask('agents/sysadmin/keys')).body
  for (const { key_id } of keys.keys ?? keys) await control.ask(`agents/sysadmin/keys/${key_id}`, { method: 'DELETE' })
}

test('numbers beyond reason are no failure, and not believed: what was reserved counts when the run ends', async () => {
  const usage = { prompt_tokens: 1e300, completion_tokens: 9e15 }
  const { control, post, taskId } = await started(() => Response.json({ choices: [], usage }))
  expect((await post('/chat/completions', { ...ask, max_tokens: 1e308 })).status).toBe(200)
  expect((await control.ask('budget')).body).toMatchObject({ spent_today: 0, reserved: 100_000_022 })
  expect(control.errors).toEqual([])
  await control.ask(`tasks/${taskId}/cancel`, { body: { note: '' } })
  await revokeKeys(control)
  expect((await control.ask('budget')).body).toMatchObject({ spent_today: 100_000_022, reserved: 0 })
  expect((await control.ask('activity?type=budget.report_refused')).body.events).toMatchObject([{ data: { reported: 1e9 } }])
})

test('without upstreams the answer is a clear 503', async () => {
  const control = await controlServer({ env: { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '' } })
  open.push(() => control[Symbol.asyncDispose]())
  const key = await control.addAgent('sysadmin')
  await control.ask('tasks', { body: { title: 't', role: 'sysadmin' } })
  const { body } = await control.ask('tasks/claim', { token: key, body: { role: 'sysadmin', agent_id: 'sysadmin' } })
  const answer = await control.ask('llm/v1/chat/completions', { token: body.run_token, body: ask })
  expect([answer.status, answer.body.error.code]).toEqual([503, 'no_upstream'])
})
