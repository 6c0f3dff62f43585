/** Schedules through the real executable: a daemon starts what is due, checks it, and sends the answer; a crash doubles and loses nothing. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { daemon, launch, person, stopping } from '../support/daemon.ts'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { call, home, scripted } from '../support/turns.ts'

const sandboxed = test.if(needs('bwrap'))

/** Adds a schedule that is due in a second, whose answer goes to "me" on the FIFOs. */
async function add(at: Nest, name: string, ...flags: readonly string[]): Promise<void> {
  const when = flags.some((flag) => ['--at', '--every', '--cron'].includes(flag)) ? [] : ['--at', 'in 1s']
  const { code, stderr } = await at.run([
    'schedule',
    'add',
    name,
    ...when,
    '-m',
    'Write the report',
    '--channel',
    'fifo',
    '--to',
    'me',
    ...flags,
  ])
  if (code !== 0) throw new Error(stderr)
}

const shown = async (at: Nest, name: string) => JSON.parse((await at.run(['schedule', 'show', name, '--json'])).stdout)
const runsOf = async (
  at: Nest,
  name: string,
): Promise<{ state: string; attempt: number; check?: string; message?: string; sent?: string }[]> => (await shown(at, name)).runs

/** Waits until the last run of the schedule has ended. */
async function ended(at: Nest, name: string) {
  for (;;) {
    const [last] = await runsOf(at, name)
    if (last && last.state !== 'running' && last.sent !== undefined) return last
    await Bun.sleep(100)
  }
}

sandboxed('what is due is done, checked in the sandbox, and answered on its channel', async () => {
  using at = home()
  await using agent = stopping(
    await daemon(
      at,
      [],
      scripted(at, [call('file_write', { path: 'report.md', content: 'all is well' }), { text: 'The report is written.' }]),
    ),
  )
  await using me = await person(agent.dir)
  await add(at, 'report', '--autonomy', 'full', '--check', 'test -s report.md && echo gone > report.md')
  expect(await me.hear()).toEqual({ channel: 'me', text: 'The report is written.' })
  expect(await ended(at, 'report')).toMatchObject({ state: 'good', check: 'passed' })
  // The check ran on a copy.
  expect(await Bun.file(`${at.workspace}/report.md`).text()).toBe('all is well')
  expect(await shown(at, 'report')).toMatchObject({ state: 'done', next: [] })
})

sandboxed('a run whose check does not pass is bad, and its channel reads that beside what the model says', async () => {
  using at = home()
  await using agent = stopping(await daemon(at, [], scripted(at, [{ text: 'Done!' }])))
  await using me = await person(agent.dir)
  await add(at, 'report', '--check', 'test -s report.md')
  expect((await me.hear()).text).toBe('Done!\n\n[schedule "report": the check "test -s report.md" did not pass: exit code 1]')
  expect(await ended(at, 'report')).toMatchObject({ state: 'bad', check: 'exit code 1' })
})

test('what needs a yes is refused, because nobody is there, and that is no success', async () => {
  using at = home()
  const writing = [call('file_write', { path: 'report.md', content: 'x' }), { text: 'Done!' }]
  await using agent = stopping(await daemon(at, [], scripted(at, writing)))
  await using me = await person(agent.dir)
  await add(at, 'report')
  expect((await me.hear()).text).toMatch(/^Done!\n\n\[schedule "report": (denied|approval needed): .*\]$/s)
  expect((await ended(at, 'report')).state).toBe('bad')
  expect(await Bun.file(`${at.workspace}/report.md`).exists()).toBe(false)
})

/** Kills a daemon in the middle of a run; the next one has this answer. */
async function killInRun(at: Nest, use: (heard: string, runs: readonly { readonly state: string }[]) => void): Promise<void> {
  const slow = scripted(at, [{ text: 'never', delay_ms: 60_000 }])
  const first = await daemon(at, [], slow)
  await add(at, 'report')
  await first.says('conversation started conversation=conversation_')
  await first.says('schedule started')
  while ((await runsOf(at, 'report'))[0] === undefined || (await shown(at, 'report')).runs[0].runId === undefined) await Bun.sleep(50)
  await first.kill()
  await using agent = stopping(launch(at, [], scripted(at, [{ text: 'hello' }])))
  await using me = await person(agent.dir)
  use((await me.hear()).text, await runsOf(at, 'report'))
}

test('kill -9 in the middle of a run: the next daemon goes on with it, and the channel gets the answer once', async () => {
  using at = home()
  await killInRun(at, (heard, runs) => expect([heard, runs.map(({ state }) => state)]).toEqual(['hello', ['good', 'interrupted']]))
  const { stdout } = await at.run(['memory', 'show', 'last'])
  expect(stdout.match(/\] user\n/g)).toHaveLength(1)
})

test('where turns do not go on, the next daemon says so, tells the channel, and does not run it again', async () => {
  using at = home()
  at.config(`continue_turns = "never"\n${readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')}`)
  await killInRun(at, (heard, runs) => {
    expect(heard).toMatch(/^\[schedule "report": interrupted: the process ended during the run run_\w+\]$/)
    expect(runs.map(({ state }) => state)).toEqual(['interrupted'])
  })
})

test('what was due while no daemon was up is run once when one comes', async () => {
  using at = home()
  await add(at, 'report')
  await Bun.sleep(1_200)
  await using agent = stopping(await daemon(at, [], scripted(at, [{ text: 'late but there' }])))
  await using me = await person(agent.dir)
  expect((await me.hear()).text).toBe('late but there')
  await Bun.sleep(1_500)
  expect((await runsOf(at, 'report')).map(({ state }) => state)).toEqual(['good'])
})

test('two daemons and a gateway on one home start each due time once', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'tick' }])
  await using one = stopping(await daemon(at, [], { env }))
  await using two = stopping(await daemon(at, ['--fifo-dir', `${at.dir}/other`], { env }))
  await using server = await gateway(at, [], { env })
  await using me = await person(one.dir)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await add(at, name)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await ended(at, name)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) expect((await runsOf(at, name)).map(({ state }) => state)).toEqual(['good'])
  void [me, two, server]
}, 120_000)

sandboxed('a person runs one now, and reads the answer; exit 1 when it does not count as good', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'here it is' }])
  await add(at, 'report', '--cron', '30 2 * * *', '--tz', 'Europe/Berlin')
  const good = await at.run(['schedule', 'run', 'report'], { env })
  expect([good.code, good.stdout]).toEqual([0, 'here it is\n'])
  await add(at, 'checked', '--every', '1h', '--check', 'false')
  const bad = await at.run(['schedule', 'run', 'checked', '--json'], { env })
  expect([bad.code, JSON.parse(bad.stdout)]).toEqual([
    1,
    expect.objectContaining({ state: 'bad', check: 'exit code 1', answer: 'here it is' }),
  ])
  // The answer is still to be sent; a daemon does it.
  await using agent = stopping(await daemon(at, [], { env }))
  await using me = await person(agent.dir)
  expect((await me.hear()).text).toBe('here it is')
})

test('over HTTP: only an admin changes schedules; adding one wakes the process, and a run can be started', async () => {
  using at = home()
  const { env } = scripted(at, [{ text: 'from the gateway' }])
  await using server = await gateway(at, [], { env })
  const reader = await tokenOf(at, 'reader', '--scope', 'read', '--scope', 'chat')
  const wanted = { name: 'report', message: 'go', at: 'in 1s', zone: 'Asia/Tokyo' }
  expect((await server.ask('/schedules', wanted, { headers: { authorization: `Bearer ${reader}` } })).status).toBe(403)
  expect((await server.ask('/schedules', { ...wanted, cron: '@daily' })).body.error).toMatchObject({ code: 'usage' })
  expect((await server.ask('/schedules', { ...wanted, zone: 'Mars' })).status).toBe(400)
  expect((await server.ask('/schedules', { ...wanted, extra: 1 })).status).toBe(400)
  expect((await server.ask('/schedules/none')).body.error.code).toBe('not_found')
  const added = await server.ask('/schedules', wanted)
  expect([added.status, added.body.zone, added.body.next.length]).toEqual([201, 'Asia/Tokyo', 1])
  for (;;) {
    const { body } = await server.ask('/schedules/report')
    if (body.last?.state === 'good') break
    await Bun.sleep(50)
  }
  const headers = { authorization: `Bearer ${server.token}`, 'last-event-id': '0' }
  const stream = (await fetch(`${server.url}/events`, { headers })).body?.pipeThrough(new TextDecoderStream())
  let told = ''
  for await (const piece of stream ?? []) {
    told += piece
    if (told.includes('schedule_fired')) break
  }
  expect(told).toMatch(/"runId":"run_\w+","event":\{"type":"schedule_fired","schedule":"report"/)
  const started = await server.ask(`/schedules/${added.body.id}/run`, {})
  expect([started.status, started.body.state, started.body.started_by]).toEqual([202, 'running', 'hand'])
  const patch = (body: object) => server.ask('/schedules/report', body, { method: 'PATCH' })
  expect((await patch({ every: '2h', pause_after: 1 })).body).toMatchObject({ state: 'active', when: 'every 2h', pause_after: 1 })
  expect((await patch({ state: 'paused' })).body).toMatchObject({ state: 'paused', next: [] })
  const same = { state: 'paused', when: 'every 2h', pause_after: 1 }
  expect((await patch({ zone: 'Europe/Berlin' })).body).toMatchObject({ ...same, zone: 'Europe/Berlin' })
  const reading = await server.ask('/schedules', undefined, { headers: { authorization: `Bearer ${reader}` } })
  expect(reading.body.schedules).toHaveLength(1)
  expect((await server.ask('/schedules/report', undefined, { method: 'DELETE' })).status).toBe(200)
  expect((await server.ask('/schedules')).body.schedules).toEqual([])
})

test.each([
  [['--every', '1h', '-m', 'x', '--channel', 'disord', '--to', 'me'], 'did you mean "discord"'],
  [['--every', '1h', '-m', 'x', '--channel', 'fifo'], 'needs --to'],
  [['--every', '1h', '-m', 'x', '--channel', 'http', '--to', 'me'], 'no channel "http"'],
  [['--every', '1h', '-m', 'x', '--agent', 'nobody'], 'no agent "nobody"'],
  [['--cron', '0 25 * * *', '-m', 'x'], 'out of range'],
  [['--every', '1h'], 'nothing to answer'],
  [['--every', '1h', '-m', 'x', '--missed', 'run-all', '--overlap', 'skip'], 'contradict each other'],
])('%j is refused with the reason', async (flags, reason) => {
  using at = home()
  const { code, stderr } = await at.run(['schedule', 'add', 'report', ...flags], { stdin: '' })
  expect([code, stderr]).toEqual([2, expect.stringContaining(reason)])
  expect((await at.run(['schedule', 'list', '--json'])).stdout).toBe('[]\n')
})
