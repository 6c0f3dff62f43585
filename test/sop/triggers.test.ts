/** Procedures that begin by themselves, and their questions in the chat that began them. What must not begin comes first. */

import { expect, test } from 'bun:test'
import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { sqlite } from '../support/alterations.ts'
import type { Nest } from '../support/cli.ts'
import { daemon, folderOf, person, stopping } from '../support/daemon.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { alone, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { writeSop } from './daily-check.ts'

const step = '[[steps]]\nid = "a"\nkind = "tool"\ntool = "file_write"\nargs = { path = "a.txt", content = "{{ inputs.text }}" }\n'
const approval = '[[steps]]\nid = "ok"\nkind = "approval"\nprompt = "May it?"\n'
const outputs = '[outputs]\nresult = "wrote {{ inputs.text }}"\n[inputs.text]\ndefault = "x"\n'
const triggers = [
  'schedule = "0 9 * * *"\nzone = "Europe/Berlin"',
  'message = "please write"\ninput = "text"',
  'webhook = "builder"\ninput = "text"',
]
const work = (steps = step) => `name = "work"\n${outputs}${triggers.map((each) => `[[triggers]]\n${each}\n`).join('')}${steps}`
const fifo = '[channels.fifo]\nprofile = "operator"\napprovers = ["me"]\n'
const full = ['--autonomy', 'full']
const triggersIn = async (at: Nest) => JSON.parse((await at.run(['sop', 'list', '--json'])).stdout)[0].triggers
const runsIn = async (at: Nest) => JSON.parse((await at.run(['sop', 'status', '--json'])).stdout)
const enable = (at: Nest) => at.run(['sop', 'enable', 'work', '--yes'])
const model = (at: Nest) => ({ env: scripted(at, Array(8).fill({ text: 'from the model' })).env })

test('a procedure that was planted in a workspace begins by nothing, and cannot be enabled before the folder is trusted', async () => {
  using at = home(fifo)
  writeSop(at, 'work', work(), 'workspace/sops')
  at.file('sops/work/SOP.toml', work())
  const { code, stderr } = await enable(at)
  expect([code, stderr.includes('is in a folder that is not trusted'), await triggersIn(at)]).toEqual([2, true, 'untrusted'])
  await at.run(['schedule', 'add', 'sly', '--every', '1h', '-m', '/sop-trigger work'])
  expect((await at.run(['schedule', 'run', 'sly'])).stderr).toContain('is not trusted')
  await using _running = stopping(await daemon(at, full, model(at)))
  await using me = await person(folderOf(at))
  expect(await me.ask('please write this')).toContain('from the model')
  expect([await runsIn(at), existsSync(join(at.workspace, 'a.txt'))]).toEqual([[], false])
})

test('in the home, too, nothing begins before a person enabled it; a person without a terminal says --yes', async () => {
  using at = home()
  writeSop(at, 'work', work())
  const asked = await at.run(['sop', 'enable', 'work'], { through: alone })
  expect([asked.code, asked.stdout.includes('a request with the token "builder"'), await triggersIn(at)]).toEqual([4, true, 'off'])
  const no = await at.terminal(['sop', 'enable', 'work'], [['[y/N]', 'n\r']])
  expect([no.code, no.stdout.includes('work was not enabled'), await triggersIn(at)]).toEqual([3, true, 'off'])
  await using server = await gateway(at, full)
  expect((await server.ask('/sops/work/webhook', {})).body.error.message).toContain('was not enabled by a person')
  expect([await runsIn(at), (await server.ask('/schedules')).body.schedules]).toEqual([[], []])
  // Somebody writes the permission into the database.
  const [{ path, digest }] = JSON.parse((await at.run(['sop', 'list', '--json'])).stdout)
  sqlite(
    at,
    `INSERT INTO always_rules(tool, scope, added_by, added_at) VALUES ('sop.trigger', '${JSON.stringify([path, digest])}', 'me', 1)`,
  )
  expect([(await server.ask('/sops/work/webhook', {})).status, await triggersIn(at), await runsIn(at)]).toEqual([400, 'off', []])
})

test('a webhook takes the token that the file names, begins once for a key, and hands its body to the input', async () => {
  using at = home()
  writeSop(at, 'work', work())
  expect((await enable(at)).code).toBe(0)
  await using server = await gateway(at, full)
  const as = async (name: string) => ({ authorization: `Bearer ${await tokenOf(at, name, '--scope', 'chat')}` })
  expect((await server.ask('/sops/work/webhook', {}, { headers: await as('other') })).status).toBe(403)
  expect(await runsIn(at)).toEqual([])
  const headers = { ...(await as('builder')), 'idempotency-key': 'one' }
  const ids = [1, 2].map(async () => (await server.ask('/sops/work/webhook', { ref: 'main' }, { headers })).body.id)
  expect(new Set(await Promise.all(ids)).size).toBe(1)
  const [run] = await until(async () => (await runsIn(at))[0]?.state === 'done' && (await runsIn(at)))
  expect([run.outputs, run.startedBy]).toEqual([{ result: 'wrote {"ref":"main"}' }, 'webhook token builder'])
})

test('a changed file stops its triggers and says so, until a person confirms it; disabled, its schedules are gone', async () => {
  using at = home(fifo)
  const path = writeSop(at, 'work', work())
  expect((await enable(at)).code).toBe(0)
  const schedule = async () => JSON.parse((await at.run(['schedule', 'list', '--json'])).stdout)
  expect(await schedule()).toMatchObject([{ name: 'sop-work-1', when: 'cron 0 9 * * *', zone: 'Europe/Berlin' }])
  await using _running = stopping(await daemon(at, full, model(at)))
  await using me = await person(folderOf(at))
  expect(await me.ask('please write it down')).toMatch(/^sop_\w+ begins$/)
  expect((await me.hear()).text).toBe('wrote it down')
  appendFileSync(path, '# other\n')
  expect([await triggersIn(at), await me.ask('please write more')]).toEqual([
    'changed',
    expect.stringContaining('has changed since it was enabled'),
  ])
  expect((await at.run(['schedule', 'run', 'sop-work-1'])).stderr).toContain('has changed since it was enabled')
  expect((await at.run(['doctor'])).stdout).toContain('braidclaw sop enable work')
  await enable(at)
  expect(await me.ask('please write again')).toMatch(/^sop_\w+ begins$/)
  expect((await me.hear()).text).toBe('wrote again')
  expect((await at.run(['approvals', 'rules', 'list'])).stdout).toContain('sop.trigger')
  await at.run(['sop', 'disable', 'work'])
  expect([await schedule(), await triggersIn(at), await me.ask('please write once more')]).toEqual([[], 'off', 'from the model'])
  expect((await runsIn(at)).length).toBe(2)
})

test('what a schedule begins sends its questions and its answer to the chat that the trigger names', async () => {
  using at = home(fifo)
  writeSop(at, 'work', work(`${approval}${step}`).replace('zone =', 'channel = "fifo"\nto = "me"\nzone ='))
  expect((await enable(at)).code).toBe(0)
  await using _running = stopping(await daemon(at, full, model(at)))
  await using me = await person(folderOf(at))
  expect((await at.run(['schedule', 'run', 'sop-work-1'])).code).toBe(0)
  const lines = [await me.hear(), await me.hear()].map(({ text }) => text).sort()
  expect(lines).toEqual([expect.stringContaining('BraidClaw asks'), expect.stringMatching(/^sop_\w+ begins$/)])
  const [, code = ''] = /"yes (\w+)"/.exec(lines[0] ?? '') ?? []
  expect(await me.ask(`yes ${code}`)).toBe('wrote x')
})

test('a step that the gate asks about is asked in the chat, with the exact change', async () => {
  using at = home(fifo)
  writeSop(at, 'work', work())
  expect((await enable(at)).code).toBe(0)
  await using _running = stopping(await daemon(at, [], model(at)))
  await using me = await person(folderOf(at))
  expect(await me.ask('please write this')).toMatch(/^sop_\w+ begins$/)
  const { text } = await me.hear()
  expect(text).toContain('+this')
  expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
  expect(await me.ask(`yes ${/"yes (\w+)"/.exec(text)?.[1]}`)).toBe('wrote this')
})

test('the chat gets the question and answers it, also after a restart; an answer from elsewhere closes it there', async () => {
  using at = home(fifo)
  writeSop(at, 'work', work(`${approval}${step}`))
  await enable(at)
  const asks =
    /^BraidClaw asks \(medium risk\): work, ok: May it\?\nwhy: the procedure asks here\nReply "yes (\w{5})" or "no \1"\. On the machine: braidclaw approvals allow (\S+)$/
  const begin = async (me: Awaited<ReturnType<typeof person>>) => {
    expect(await me.ask('please write this')).toMatch(/^sop_\w+ begins$/)
    return asks.exec((await me.hear()).text) ?? []
  }
  await using me = await person(folderOf(at))
  const first = await daemon(at, full, model(at))
  const [, code = '', id = ''] = await begin(me)
  expect(await me.ask(`yes ${code}`, 'somebody')).toContain('was not asked here')
  await first.kill()
  await using _running = stopping(await daemon(at, full, model(at)))
  await until(async () => (await me.ask(`yes ${code}`)) === 'wrote this')
  expect(await me.ask(`no ${code}`)).toContain('closed already')
  const [, other = '', second = ''] = await begin(me)
  expect([second === id, (await at.run(['approvals', 'deny', second])).code]).toEqual([false, 0])
  expect((await me.hear()).text).toBe('[closed: work, ok: May it?: denied by operator]')
  expect((await me.hear()).text).toContain('[work failed: ok: denied by operator')
  expect(await me.ask(`yes ${other}`)).toContain('closed already')
})
