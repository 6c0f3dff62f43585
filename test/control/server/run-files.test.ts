/** Logs by ranges of bytes and artifacts by digest, over HTTP. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Claim } from '../../../src/control/contract/task-shapes.ts'
import { sha256 } from '../../../src/kit/sha256.ts'
import { type ControlUnderTest, controlServer } from '../support/control-server.ts'

const held: { control?: ControlUnderTest; claim?: Claim; other?: Claim } = {}
beforeAll(async () => {
  held.control = await controlServer()
  for (const [at, id] of [
    ['claim', 'ann'],
    ['other', 'bob'],
  ] as const) {
    const key = await held.control.addAgent(id)
    await held.control.client().tasks.create({ title: id, role: id })
    const claim = await held.control.client(key).tasks.claim({ role: id, agent_id: id })
    if (!claim) throw new Error('nothing to claim')
    held[at] = claim
  }
})
afterAll(() => held.control?.[Symbol.asyncDispose]())
const at = (): ControlUnderTest => {
  if (!held.control) throw new Error('not started')
  return held.control
}
const token = () => held.claim?.run_token ?? ''
const run = () => held.claim?.run_id ?? ''

test('a log grows by pieces that may arrive twice, and is read by ranges', async () => {
  const client = at().client(token())
  const text = 'Größe: 10 €\n0123456789\n'
  const bytes = Buffer.from(text)
  expect(await client.runs.appendLog(run(), 0, text)).toEqual({ log_bytes: bytes.length, log_truncated: false })
  expect((await client.runs.appendLog(run(), 0, text)).log_bytes).toBe(bytes.length)
  expect((await client.runs.appendLog(run(), bytes.length, 'end\n')).log_bytes).toBe(bytes.length + 4)
  const whole = await at().ask(`runs/${run()}/log`)
  expect([whole.status, whole.text, whole.headers.get('content-type'), whole.headers.get('accept-ranges')]).toEqual([
    200,
    `${text}end\n`,
    'text/plain; charset=utf-8',
    'bytes',
  ])
  const all = Buffer.from(`${text}end\n`)
  for (const [range, from, to] of [
    ['bytes=0-3', 0, 4],
    ['bytes=5-', 5, all.length],
    ['bytes=-4', all.length - 4, all.length],
    ['bytes=3-9999', 3, all.length],
  ] as const) {
    const response = await fetch(`${at().url}/api/controlplane/runs/${run()}/log`, {
      headers: { authorization: `Bearer ${token()}`, range },
    })
    expect([range, response.status, response.headers.get('content-range')]).toEqual([range, 206, `bytes ${from}-${to - 1}/${all.length}`])
    expect(Buffer.from(await response.arrayBuffer())).toEqual(all.subarray(from, to))
  }
  const beyond = await at().ask(`runs/${run()}/log`, { headers: { range: 'bytes=999-' } })
  expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, `bytes */${all.length}`])
  const part = await client.runs.log(run(), 16, 26)
  expect([Buffer.from(part.bytes), part.total]).toEqual([all.subarray(16, 26), all.length])
  expect((await client.runs.log(run(), 900, 1_000)).bytes.length).toBe(0)
})

test('a log keeps what a program prints, also NUL characters', async () => {
  const key = await at().addAgent('cat')
  await at().client().tasks.create({ title: 'cat', role: 'cat' })
  const claim = await at().client(key).tasks.claim({ role: 'cat', agent_id: 'cat' })
  const client = at().client(claim?.run_token)
  const text = 'a\0b\u001b[2J\r\n'
  await client.runs.appendLog(claim?.run_id ?? '', 0, text)
  expect(Buffer.from((await client.runs.log(claim?.run_id ?? '')).bytes).toString()).toBe(text)
})

test('an artifact comes back as it was, as a file to save, and only with the right digest', async () => {
  const client = at().client(token())
  const bytes = new Uint8Array([0, 255, 60, 104, 116, 109, 108, 62])
  const [digest, body] = [sha256(bytes), Buffer.from(bytes).toString('base64')]
  await expect(client.runs.putArtifact(run(), { name: 'a.html', digest: sha256('other'), body })).rejects.toMatchObject({
    code: 'bad_request',
  })
  for (let twice = 0; twice < 2; twice += 1)
    expect(await client.runs.putArtifact(run(), { name: 'a.html', digest, body })).toEqual({ name: 'a.html', digest, bytes: 8 })
  expect(await client.runs.artifact(run(), 'a.html')).toEqual({ bytes, digest })
  const answer = await at().ask(`runs/${run()}/artifacts/a.html`)
  expect([
    answer.headers.get('content-type'),
    answer.headers.get('content-disposition'),
    answer.headers.get('x-content-type-options'),
  ]).toEqual(['application/octet-stream', 'attachment; filename="a.html"', 'nosniff'])
  for (const name of ['../x', 'a/b', '.hidden', 'a b', '%00'])
    expect([
      name,
      (await at().ask(`runs/${run()}/artifacts/${encodeURIComponent(name)}`, { method: 'PUT', body: { digest, body }, token: token() }))
        .status >= 400,
    ]).toEqual([name, true])
})

test('the files of a run belong to it: another run, another agent and a log that floods change nothing', async () => {
  const other = at().client(held.other?.run_token ?? '')
  const before = (await at().client().runs.get(run())).log_bytes
  await expect(other.runs.appendLog(run(), before, 'foreign')).rejects.toMatchObject({ code: 'forbidden' })
  await expect(other.runs.log(run())).rejects.toMatchObject({ code: 'forbidden' })
  await expect(other.runs.deliver(run(), { skill: 'x' })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(other.runs.putArtifact(run(), { name: 'x', digest: sha256(''), body: '' })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(other.tasks.beat(held.claim?.task.task_id ?? '')).rejects.toMatchObject({ code: 'forbidden' })
  expect((await at().client().runs.get(run())).log_bytes).toBe(before)
  const effects = `tasks/${held.other?.task.task_id}/effects`
  const done = (result: string) => at().ask(`${effects}/done`, { body: { key: 'k', result }, token: held.other?.run_token ?? '' })
  await at().ask(effects, { body: { key: 'k' }, token: held.other?.run_token ?? '' })
  expect([(await done('x'.repeat(70_000))).status, (await done('x'.repeat(60_000))).status]).toEqual([400, 200])
  const client = at().client(held.other?.run_token ?? '')
  const flood = 'x'.repeat(1_000_000)
  const id = held.other?.run_id ?? ''
  for (let n = 0; n < 10; n += 1) await client.runs.appendLog(id, n * 1_000_000, flood).catch(() => {})
  const { log_bytes, log_truncated } = await at().client().runs.get(id)
  expect([log_bytes <= 8_388_608 + 1_000, log_truncated]).toEqual([true, true])
  expect(at().errors).toEqual([])
}, 120_000)
