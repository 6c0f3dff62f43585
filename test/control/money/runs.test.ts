import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readFigures } from '../../../src/control/plane/create-plane.ts'
import { pruneOld } from '../../../src/control/plane/prune.ts'
import { noteHostd } from '../../../src/control/plane/runs.ts'
import { sha256 } from '../../../src/kit/sha256.ts'
import { forEachEngine } from '../support/engines.ts'
import { codeOf, type MoneyPlane, moneyPlane, refusalOf, seedCaller } from '../support/money-plane.ts'
import { agentCaller, anna, draft } from '../support/task-plane.ts'

async function planeWithRun(open: Parameters<Parameters<typeof forEachEngine>[1]>[0]) {
  const plane = await moneyPlane(await open())
  await plane.addAgent('a1')
  await plane.addAgent('b1')
  return { plane, run: await plane.startRun() }
}

const utf8 = (text: string) => Buffer.from(text, 'utf8')
const readText = async (plane: MoneyPlane, from = 0, to = 1e9) =>
  Buffer.from((await plane.runs.log(anna, 'RUN-001', from, to)).bytes).toString('utf8')

forEachEngine('runs', (open) => {
  test('nobody writes to a run of somebody else, and a run without its lease writes nothing', async () => {
    const { plane, run } = await planeWithRun(open)
    const other = await plane.startRun('b1')
    const artifact = { name: 'a', digest: sha256(''), body: '' }
    for (const caller of [other.caller, agentCaller('b1'), seedCaller]) {
      expect(await codeOf(plane.runs.appendLog(caller, 'RUN-001', 0, 'x'))).toBe('forbidden')
      expect(await codeOf(plane.runs.deliver(caller, 'RUN-001', { changes: 'applied' }))).toBe('forbidden')
      expect(await codeOf(plane.runs.putArtifact(caller, 'RUN-001', artifact))).toBe('forbidden')
      expect(await codeOf(plane.runs.get(caller, 'RUN-001'))).toBe('forbidden')
      expect(await codeOf(plane.runs.log(caller, 'RUN-001', 0, 9))).toBe('forbidden')
      expect(await codeOf(plane.runs.artifact(caller, 'RUN-001', 'a'))).toBe('forbidden')
      expect(await codeOf(plane.runs.sessions(caller, 'a1', 5))).toBe('forbidden')
      expect(await codeOf(plane.runs.addSession(caller, 'a1', { timestamp: '', task: '', skill: '', outcome: '', tokens_used: 0 }))).toBe(
        'forbidden',
      )
    }
    expect(await codeOf(plane.runs.list(seedCaller, { limit: 5 }))).toBe('forbidden')
    plane.clock.at += 60_001
    expect(await codeOf(plane.runs.appendLog(run.caller, 'RUN-001', 0, 'x'))).toBe('lease_lost')
    expect(await codeOf(plane.runs.putArtifact(run.caller, 'RUN-001', artifact))).toBe('lease_lost')
    expect(await codeOf(plane.runs.deliver(run.caller, 'RUN-001', {}))).toBe('lease_lost')
    const line = { timestamp: '', task: 'do what I say', skill: '', outcome: '', tokens_used: 0 }
    expect(await codeOf(plane.runs.addSession(run.caller, 'a1', line))).toBe('lease_lost')
    expect(await plane.runs.sessions(anna, 'a1', 9)).toEqual([])
    expect(await plane.runs.get(anna, 'RUN-001')).toMatchObject({ log_bytes: 0, artifacts: [], changes: null })
    expect(await codeOf(plane.runs.appendLog(agentCaller('a1'), 'RUN-001', 0, 'what the runner left'))).toBe('done')
  })

  test('a piece of a log that comes twice is stored once, and a gap is refused with the byte to go on from', async () => {
    const { plane, run } = await planeWithRun(open)
    const append = (at: number, piece: string) => plane.runs.appendLog(run.caller, 'RUN-001', at, piece)
    expect(await append(0, 'grüße ')).toEqual({ log_bytes: 8, log_truncated: false })
    expect(await append(0, 'grüße ')).toEqual({ log_bytes: 8, log_truncated: false })
    expect((await append(0, 'grüße an')).log_bytes).toBe(10)
    expect((await append(10, ' alle\0')).log_bytes).toBe(16)
    const gap = await refusalOf(append(17, 'x'))
    expect([gap.code, gap.details.log_bytes]).toEqual(['conflict', 16])
    expect(await readText(plane)).toBe('grüße an alle\0')
  })

  test('any pieces, sent again and in any overlap, read back as the bytes between any two positions', async () => {
    const { plane } = await planeWithRun(open)
    const agent = agentCaller('a1')
    const written = { text: '' }
    const piece = fc.record({
      text: fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
      back: fc.nat(9),
      from: fc.nat(),
      length: fc.nat(40),
    })
    await fc.assert(
      fc.asyncProperty(piece, async ({ text, back, from, length }) => {
        // Sends again what is there already, from the beginning of a character on.
        const start = [...written.text].slice(0, Math.max(0, [...written.text].length - back)).join('')
        await plane.runs.appendLog(agent, 'RUN-001', utf8(start).length, written.text.slice(start.length) + text)
        written.text += text
        const bytes = utf8(written.text)
        const begin = from % (bytes.length + 3)
        const read = await plane.runs.log(anna, 'RUN-001', begin, begin + length)
        expect(Buffer.from(read.bytes).toString('hex')).toBe(bytes.subarray(begin, begin + length).toString('hex'))
        expect(read.total).toBe(bytes.length)
      }),
      { numRuns: 60 },
    )
  })

  test('single characters make few rows, and a character that the cap cuts in two is kept as the bytes it has', async () => {
    const { plane, run } = await planeWithRun(open)
    for (let at = 0; at < 40; at += 1) await plane.runs.appendLog(run.caller, 'RUN-001', at, String(at % 10))
    expect(await plane.rows('SELECT run_id FROM run_logs')).toHaveLength(1)
    expect(await codeOf(plane.runs.appendLog(run.caller, 'RUN-001', -1, 'x'))).toBe('bad_request')
    const cap = 8_388_608
    await plane.store.write(function* () {
      yield ['UPDATE runs SET log_bytes = ?', [cap - 1]]
    })
    expect(await plane.runs.appendLog(run.caller, 'RUN-001', cap - 1, 'é')).toEqual({ log_bytes: cap, log_truncated: true })
    expect([...(await plane.runs.log(anna, 'RUN-001', cap - 1, cap)).bytes]).toEqual([0xc3])
  })

  test('a flood is cut at 8 MiB, and the run goes on', async () => {
    const { plane, run } = await planeWithRun(open)
    const mebi = 1_048_576
    expect(await codeOf(plane.runs.appendLog(run.caller, 'RUN-001', 0, 'x'.repeat(mebi + 1)))).toBe('too_large')
    for (let at = 0; at < 8; at += 1)
      await plane.runs.appendLog(run.caller, 'RUN-001', at * mebi, (at === 7 ? 'y'.repeat(9) : '').padEnd(mebi, 'x'))
    expect(await plane.runs.appendLog(run.caller, 'RUN-001', 8 * mebi, 'more')).toEqual({ log_bytes: 8 * mebi, log_truncated: true })
    expect(await plane.runs.appendLog(run.caller, 'RUN-001', 9 * mebi, 'more')).toEqual({ log_bytes: 8 * mebi, log_truncated: true })
    expect((await plane.runs.get(anna, 'RUN-001')).log_truncated).toBe(true)
    const read = await plane.runs.log(anna, 'RUN-001', 0, 8 * mebi)
    expect([read.bytes.length, read.total]).toEqual([mebi, 8 * mebi])
    expect(await readText(plane, 7 * mebi, 7 * mebi + 10)).toBe('yyyyyyyyyx')
  }, 120_000)

  test('an artifact is what its digest says, and never changes', async () => {
    const { plane, run } = await planeWithRun(open)
    const put = (name: string, body: string, digest = sha256(body)) =>
      plane.runs.putArtifact(run.caller, 'RUN-001', { name, digest, body: Buffer.from(body).toString('base64') })
    expect(await codeOf(put('../../etc/passwd', 'x'))).toBe('bad_request')
    expect(await codeOf(put('a.txt', 'x', sha256('y')))).toBe('bad_request')
    expect(await codeOf(plane.runs.putArtifact(run.caller, 'RUN-001', { name: 'a', digest: sha256('x'), body: '%%%' }))).toBe('bad_request')
    expect(await codeOf(put('a.txt', 'x'.repeat(1_048_577)))).toBe('too_large')
    expect(await put('a.txt', 'one')).toEqual({ name: 'a.txt', digest: sha256('one'), bytes: 3 })
    expect(await codeOf(put('a.txt', 'one'))).toBe('done')
    expect(await codeOf(put('a.txt', 'two'))).toBe('conflict')
    for (let at = 2; at <= 16; at += 1) await put(`f${at}`, 'x')
    expect(await codeOf(put('one-more', 'x'))).toBe('too_many')
    expect(await plane.runs.artifact(agentCaller('a1'), 'RUN-001', 'a.txt')).toEqual({ digest: sha256('one'), body: 'b25l' })
    expect(await codeOf(plane.runs.artifact(anna, 'RUN-001', 'none'))).toBe('not_found')
    expect((await plane.runs.get(anna, 'RUN-001')).artifacts).toHaveLength(16)
  })

  test('a delivery keeps what it does not name, and an operator says what became of the changes', async () => {
    const { plane, run } = await planeWithRun(open)
    await plane.runs.deliver(run.caller, 'RUN-001', { manifest: { v: 1 }, changes: 'waiting', skill: 'jail-status' })
    await plane.complete(run.caller, 'TASK-001')
    expect(await codeOf(plane.runs.deliver(run.caller, 'RUN-001', { changes: 'none' }))).toBe('lease_lost')
    const delivered = await plane.runs.deliver(anna, 'RUN-001', { changes: 'applied' })
    expect(delivered).toMatchObject({
      manifest: { v: 1 },
      changes: 'applied',
      skill: 'jail-status',
      state: 'completed',
      task_title: 'look',
    })
    // A page of runs would carry up to 200 of them.
    const [listed] = (await plane.runs.list(anna, { limit: 50 })).runs
    expect([listed?.has_manifest, Object.keys(listed ?? {}).includes('manifest'), delivered.has_manifest]).toEqual([true, false, true])
    expect(await codeOf(plane.runs.deliver(anna, 'RUN-001', { manifest: { text: 'x'.repeat(300_000) } }))).toBe('too_large')
  })

  test('session lines have the keys of the seed in its order, oldest first', async () => {
    const { plane, run } = await planeWithRun(open)
    const line = {
      tokens_used: 420,
      outcome: 'running',
      skill: 'jail-status',
      task: 'Check jail status',
      timestamp: '2026-04-06T10:00:00Z',
    }
    await plane.runs.addSession(run.caller, 'a1', line)
    await plane.runs.addSession(agentCaller('a1'), 'a1', { ...line, task: 'second' })
    await plane.runs.addSession(agentCaller('a1'), 'a1', { ...line, task: 'third' })
    const lines = await plane.runs.sessions(agentCaller('a1'), 'a1', 2)
    expect(lines.map((one) => one.task)).toEqual(['second', 'third'])
    const [first] = await plane.runs.sessions(anna, 'a1', 9)
    expect(JSON.stringify(first)).toBe(
      '{"timestamp":"2026-04-06T10:00:00Z","task":"Check jail status","skill":"jail-status","outcome":"running","tokens_used":420}',
    )
  })

  test('of an agent the last thousand session lines are kept', async () => {
    const { plane, run } = await planeWithRun(open)
    const line = { timestamp: '', task: '', skill: '', outcome: '', tokens_used: 0 }
    await plane.store.write(function* () {
      for (const agent of ['a1', 'b1'])
        for (let at = 0; at < 1_001; at += 1)
          yield ['INSERT INTO sessions (id, agent_id, line) VALUES (?, ?, ?)', [at - (agent === 'a1' ? 2_000 : 5_000), agent, '{}']]
    })
    await plane.runs.addSession(run.caller, 'a1', { ...line, task: 'last' })
    const counts = await plane.rows(
      'SELECT agent_id, COUNT(*) AS value, MIN(id) AS least FROM sessions GROUP BY agent_id ORDER BY agent_id',
    )
    expect(counts.map(({ value, least }) => [Number(value), Number(least)])).toEqual([
      [1_000, -1_998],
      [1_001, -5_000],
    ])
  })

  test('runs are listed newest first, an agent’s own only', async () => {
    const { plane } = await planeWithRun(open)
    await plane.startRun('b1')
    await plane.startRun('a1')
    const ids = async (caller: Parameters<typeof plane.runs.list>[0], query = {}) =>
      (await plane.runs.list(caller, { limit: 50, ...query })).runs.map((one) => one.run_id)
    expect(await ids(anna)).toEqual(['RUN-003', 'RUN-002', 'RUN-001'])
    expect(await ids(agentCaller('a1'))).toEqual(['RUN-003', 'RUN-001'])
    expect(await ids(anna, { task_id: 'TASK-002', state: 'running' })).toEqual(['RUN-002'])
    expect((await plane.runs.list(anna, { limit: 2 })).next).toBe('RUN-002')
    expect(await ids(anna, { limit: 2, after: 'RUN-002' })).toEqual(['RUN-001'])
  })

  test('hostd calls are kept, figures count, and old records go only where the operator says so', async () => {
    const { plane, run } = await planeWithRun(open)
    await noteHostd(plane.context, run.caller, { op: 'bastille-list', params: {}, ok: true, exitCode: 0, output: 'JID\0' })
    expect((await plane.rows('SELECT op, caller, output FROM hostd_calls'))[0]).toMatchObject({
      op: 'bastille-list',
      caller: 'run RUN-001 of a1',
    })
    await plane.runs.appendLog(run.caller, 'RUN-001', 0, 'log')
    await plane.complete(run.caller, 'TASK-001')
    expect(await readFigures(plane.context)).toMatchObject({ tasks_completed: 1, runs_completed: 1, agents: 2, agents_paused: 0 })
    plane.clock.at += 10 * 86_400_000
    await plane.tasks.create(anna, draft({ title: 'today' }))
    const counts = async () => [(await plane.rows('SELECT id FROM events')).length > 1, (await plane.runs.get(anna, 'RUN-001')).log_bytes]
    await pruneOld(plane.context)
    expect(await counts()).toEqual([true, 3])
    await pruneOld({ ...plane.context, options: { ...plane.context.options, retentionDays: 11 } })
    expect(await counts()).toEqual([true, 3])
    plane.clock.at += 61_000
    await pruneOld({ ...plane.context, options: { ...plane.context.options, retentionDays: 9 } })
    expect(await counts()).toEqual([false, 0])
    expect((await plane.rows('SELECT type FROM events')).map((row) => row.type)).toEqual(['task.created'])
  })

  test('what is old goes in small steps, and what belongs to a task that has not ended stays, with the ledger', async () => {
    const { plane, run } = await planeWithRun(open)
    const open_ = await plane.startRun('a1')
    const body = Buffer.from('x').toString('base64')
    const line = { timestamp: '', task: '', skill: '', outcome: '', tokens_used: 0 }
    for (const { caller } of [run, open_]) {
      await noteHostd(plane.context, caller, { op: 'bastille-list', params: {}, ok: true, exitCode: 0, output: '' })
      await plane.activity(caller, { event_type: 'error', agent_id: 'a1', error_message: 'x', tokens_used: 7 })
      await plane.runs.addSession(caller, 'a1', line)
      await plane.runs.appendLog(caller, caller.runId, 0, 'log')
      await plane.runs.appendLog(caller, caller.runId, 3, 'log')
      await plane.runs.putArtifact(caller, caller.runId, { name: 'a', digest: sha256('x'), body })
    }
    const completes = { event_type: 'task_completed', task_id: 'TASK-001', agent_id: 'a1', result: { status: 'ok', tokens_used: 7 } }
    const said = await plane.activity(run.caller, completes)
    await plane.tasks.release(open_.caller, open_.caller.taskId, { outcome: 'now' })
    await plane.runs.addSession(agentCaller('a1'), 'a1', line)
    await plane.store.write(function* () {
      // More than one step takes.
      for (let at = 1; at <= 1_300; at += 1)
        yield ["INSERT INTO events (id, at, type, actor, data) VALUES (?, 5, 'old', '', '{}')", [1_000 + at]]
    })
    const tables = ['events', 'activity', 'sessions', 'hostd_calls', 'run_logs', 'artifacts', 'ledger'] as const
    const count = async () => {
      const found: number[] = []
      for (const table of tables) found.push(Number((await plane.rows(`SELECT COUNT(*) AS value FROM ${table}`))[0]?.value))
      return found
    }
    const prune = async (days: number) => {
      plane.clock.at += 61_000
      await pruneOld({ ...plane.context, options: { ...plane.context.options, retentionDays: days } })
    }
    plane.clock.at += 10 * 86_400_000
    // A completion that is sent again is answered as the first one as long as its record is kept.
    await prune(11)
    expect(await plane.activity(run.caller, completes)).toEqual(said)
    const [, ...before] = await count()
    expect(before).toEqual([3, 3, 2, 2, 2, 2])
    await prune(9)
    const ofTask = 'SELECT DISTINCT task_id FROM events'
    expect((await plane.rows(ofTask)).map(({ task_id }) => Number(task_id ?? 0)).toSorted()).toEqual([2, 3, 4])
    expect((await count()).slice(1)).toEqual([1, 1, 1, 1, 1, 2])
    for (const id of ['TASK-002', 'TASK-003', 'TASK-004']) await plane.tasks.cancel(anna, id, '')
    await prune(9)
    expect((await count()).slice(1)).toEqual([0, 0, 0, 0, 0, 2])
    expect((await plane.rows('SELECT type FROM events')).map(({ type }) => type)).toEqual([
      'task.cancelled',
      'task.cancelled',
      'task.cancelled',
    ])
  })
})
