/** Procedures in a process that stays: begun over HTTP, by a schedule and by text, and continued by an answer from anywhere. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { daemon, folderOf, person, stopping } from '../support/daemon.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { dailyCheck, writeSop } from './daily-check.ts'

const write = 'name = "work"\n[[steps]]\nid = "a"\nkind = "tool"\ntool = "file_write"\nargs = { path = "a.txt", content = "x" }\n'

test('a token that may only chat begins nothing, wrong names and inputs are refused, and nothing has run', async () => {
  using at = home()
  writeSop(at, 'work', write)
  await using server = await gateway(at)
  const chat = await tokenOf(at, 'chat', '--scope', 'chat')
  const asChat = { headers: { authorization: `Bearer ${chat}` } }
  expect((await server.ask('/sops/work/runs', {}, asChat)).status).toBe(403)
  expect((await server.ask('/sops/wrk/runs', {})).body.error.message).toContain('did you mean "work"?')
  expect((await server.ask('/sops/work/runs', { inputs: { city: 'x' } })).status).toBe(400)
  expect((await server.ask('/sops/runs/sop_none')).status).toBe(404)
  expect([(await server.ask('/sops/runs')).body, existsSync(join(at.workspace, 'a.txt'))]).toEqual([{ runs: [] }, false])
})

test('begun over HTTP, once for a key; it waits at its approval, and a yes over HTTP lets it end', async () => {
  using at = home('', '')
  at.file('a.txt', 'hello')
  writeSop(at, 'daily-check', dailyCheck)
  const { env } = scripted(at, [{ text: 'One file.' }])
  await using server = await gateway(at, ['--autonomy', 'full'], { env })
  expect((await server.ask('/sops')).body.sops).toMatchObject([{ name: 'daily-check', steps: 4, problems: [] }])
  const key = { headers: { 'idempotency-key': 'webhook-1' } }
  const begun = await server.ask('/sops/daily-check/runs', {}, key)
  expect([begun.status, (await server.ask('/sops/daily-check/runs', {}, key)).body.id]).toEqual([202, begun.body.id])
  const of = (state: string) => async () => {
    const { body } = await server.ask(`/sops/runs/${begun.body.id}`)
    return body.state === state && body
  }
  await until(of('waiting'))
  const question = (await server.ask('/approvals')).body.approvals.find(({ id }: { id: string }) => id === `${begun.body.id}/approval`)
  expect(question).toMatchObject({ tool: 'sop.approval', summary: 'daily-check, approval: Continue to write report?' })
  const other = { headers: { authorization: `Bearer ${await tokenOf(at, 'other', '--scope', 'chat', '--scope', 'approve')}` } }
  expect((await server.ask(`/approvals/${question.id}`, { decision: 'allow' }, other)).status).toBe(404)
  expect((await server.ask(`/approvals/${question.id}`, { decision: 'allow' })).status).toBe(200)
  const ended = await until(of('done'))
  expect(ended.steps.map(({ step, state }: { step: string; state: string }) => `${step} ${state}`)).toEqual([
    'list done',
    'summarize done',
    'approval done',
    'write done',
  ])
  expect(readFileSync(join(at.workspace, 'daily-check.txt'), 'utf8')).toBe('One file.')
  expect((await server.ask(`/sops/runs/${begun.body.id}/cancel`, {})).status).toBe(409)
})

test('a schedule with the message /sop NAME begins it, and a wrong name makes the schedule fail', async () => {
  using at = home()
  writeSop(at, 'work', write)
  await using server = await gateway(at, ['--autonomy', 'full'])
  for (const [name, message] of [['good', '/sop work'] as const, ['bad', '/sop wrk'] as const]) {
    await server.ask('/schedules', { name, message, every: '6h' })
    await server.ask(`/schedules/${name}/run`, {})
  }
  const last = (name: string) => async () => {
    const { runs } = (await server.ask(`/schedules/${name}`)).body
    return runs[0]?.state !== 'running' && runs[0]
  }
  expect([(await until(last('good'))).state, (await until(last('bad'))).state]).toEqual(['good', 'bad'])
  await until(() => existsSync(join(at.workspace, 'a.txt')))
  const { runs } = (await server.ask('/sops/runs')).body
  expect(runs).toMatchObject([{ name: 'work', started_by: 'schedule good' }])
})

test('a person in a chat begins a procedure and answers its question; somebody with the limits of a chat does neither', async () => {
  for (const profile of ['chat', 'operator']) {
    using at = home(`[channels.fifo]\nprofile = "${profile}"\napprovers = ["me"]\n`)
    writeSop(at, 'work', `${write.replace('[[steps]]', '[[steps]]\nid = "ok"\nkind = "approval"\nprompt = "May it?"\n[[steps]]')}`)
    const { env } = scripted(at, Array(8).fill({ text: 'from the model' }))
    await using _running = stopping(await daemon(at, ['--autonomy', 'full'], { env }))
    await using me = await person(folderOf(at))
    if (profile === 'chat') {
      expect(await me.ask('/sop work')).toContain('from the model')
      continue
    }
    expect(await me.ask('/sop work')).toMatch(/^sop_\w+ begins$/)
    expect((await me.hear()).text).toContain('BraidClaw asks')
    const [, question = ''] = /\/sop allow (\S+)/.exec(await me.ask('/sop')) ?? []
    expect(await me.ask(`/sop allow ${question}`, 'somebody')).toBe('only the approvers of this channel answer questions')
    expect(await me.ask(`/sop allow ${question}`)).toBe('allow: work, ok: May it?')
    await until(() => existsSync(join(at.workspace, 'a.txt')))
  }
})

test('in the conversation at a terminal /sop lists and begins', async () => {
  using at = home()
  writeSop(at, 'work', write)
  const { stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', '/sop\r'],
      ['work', '/sop work\r'],
      ['begins where', '/exit\r'],
    ],
  )
  expect(stdout).toContain('else: braidclaw sop resume sop_')
  expect((await at.run(['sop', 'resume', 'last', '--autonomy', 'full'])).code).toBe(0)
})
