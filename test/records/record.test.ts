/** Journal and receipts together: killed, crowded, full, altered. */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clearConversations } from '../../src/memory/conversations/delete-conversations.ts'
import { acting, callOf, finish, refusing, runOf, started } from '../../src/memory/fixture.ts'
import { attempts } from '../../src/memory/journal/attempts.ts'
import { readKey } from '../../src/receipts/key.ts'
import { deepVerify } from '../../src/receipts/verify/deep.ts'
import { type Verification, verifyReceipts } from '../../src/receipts/verify/verify-chain.ts'
import { openRecord, pathsIn } from '../support/record.ts'
import { repetitions } from '../support/tier.ts'

const child = join(import.meta.dir, '../support/record-child.ts')
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-record-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const spawn = (name: string, count: number) =>
  Bun.spawn([process.execPath, child, folder, name, String(count)], { stdout: 'pipe', stderr: 'pipe' })

function verify(): Verification {
  const { log, head, key } = pathsIn(folder)
  const { memory, close } = openRecord(folder)
  const checkpoint = memory.checkpoint.get()
  const ownLog = memory.checkpoint.ownLog()
  close()
  return verifyReceipts({ path: log, headPath: head, key: readKey(key), checkpoint, ownLog })
}

function deep(): ReturnType<typeof deepVerify> {
  const { memory, close } = openRecord(folder)
  const known = { counted: memory.checkpoint.get()?.count ?? 0, older: 0, wordsOf: memory.actions.wordsOf }
  const result = deepVerify(pathsIn(folder).log, attempts(memory.store), known)
  close()
  return result
}

const kills = repetitions({ fast: 6, deep: 30 })

test('kill -9 amid appends, time after time: nothing acknowledged is lost, the chain is whole, every act has its receipt', async () => {
  const acknowledged: string[] = []
  for (let round = 0; round < kills; round += 1) {
    const victim = spawn(String(round), 1_000_000)
    const output = victim.stdout.getReader()
    let text = ''
    for (let next = await output.read(); !next.done; next = await output.read()) {
      text += new TextDecoder().decode(next.value)
      // Kills at another place of each round, and never before three appends.
      if (text.split('\n').length > 3 + (round % 7)) victim.kill('SIGKILL')
    }
    await victim.exited
    acknowledged.push(
      ...text
        .split('\n')
        .slice(0, -1)
        .map((line) => `run-${round} ${line}`),
    )
    // What a machine that loses power may leave besides.
    if (round % 5 === 0) appendFileSync(pathsIn(folder).log, '{"args_hash":"torn')
    const { recorder, close } = openRecord(folder)
    const { tornBytes } = recorder.recover()
    expect(tornBytes > 0).toBe(round % 5 === 0)
    close()
  }
  expect(verify()).toMatchObject({ ok: true, problems: [], warnings: [] })
  expect(deep()).toMatchObject({ ok: true, pending: 0, problems: [] })
  const { memory, close } = openRecord(folder)
  const kept = new Set([...attempts(memory.store)].map(({ runId, callId, receiptId }) => `${runId} ${callId} ${receiptId}`))
  expect(acknowledged.filter((line) => !kept.has(line))).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(2 * kills)
  expect(memory.journal.unfinished()).toEqual([])
  close()
})

test('eight processes on one home: no receipt lost, one chain', async () => {
  const children = Array.from({ length: 8 }, (_, number) => spawn(String(number), 25))
  const ends = await Promise.all(
    children.map(async (each) => ({ code: await each.exited, trouble: await each.stderr.text(), said: await each.stdout.text() })),
  )
  expect(ends.map(({ code, trouble }) => [code, trouble])).toEqual(Array(8).fill([0, '']))
  const ids = ends.flatMap(({ said }) =>
    said
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[1]),
  )
  expect(new Set(ids).size).toBe(400)
  expect(verify()).toMatchObject({ ok: true, count: 400, warnings: [] })
  expect(deep()).toMatchObject({
    ok: true,
    attempts: 400,
    pending: 0,
    unfinished: [],
    withoutAttempt: 0,
    problems: [],
    withoutRun: { holes: [] },
  })
})

test('a crash between receipt and commit: the receipt is adopted, the act reported as interrupted', () => {
  const { memory, recorder, close } = openRecord(folder)
  const run = runOf(1)
  recorder.external(run, started('hi'))
  recorder.intent(run, acting(callOf('a')))
  // The transaction is rolled back after the receipt is on disk, as when the process dies there.
  expect(() =>
    memory.transaction(() => {
      recorder.external(run, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } })
      throw new Error('power cut')
    }),
  ).toThrow('power cut')
  expect(verify()).toMatchObject({ ok: true, count: 1 })
  expect(recorder.denied(run, refusing(callOf('b')))).toEndWith('-3')
  expect(verify()).toMatchObject({ ok: true, count: 3, warnings: [] })
  expect(deep()).toMatchObject({ ok: true, attempts: 2, pending: 1, withoutAttempt: 2, withoutRun: { holes: [] } })
  close()
})

test('an altered log ends the run, and nothing is journalled that has no receipt', () => {
  const { memory, recorder, close } = openRecord(folder)
  const run = runOf(1)
  for (const id of ['a', 'b']) recorder.denied(run, refusing(callOf(id)))
  const { log } = pathsIn(folder)
  writeFileSync(log, readFileSync(log, 'utf8').replace(/"denied"(?=[^\n]*\n$)/, '"failed"'))
  const before = memory.journal.events(run.runId)
  expect(() => recorder.denied(run, refusing(callOf('c')))).toThrow('was altered')
  expect(() => recorder.recover()).toThrow('was altered')
  expect(memory.journal.events(run.runId)).toEqual(before)
  expect(verify().problems[0]).toMatchObject({ record: 2, kind: 'hash' })
  close()
})

test('a journal that was altered is found by the deep check, not by the chain', () => {
  const { recorder, close } = openRecord(folder)
  const run = runOf(1)
  recorder.intent(run, acting(callOf('a', { path: 'harmless.txt' })))
  recorder.external(run, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } })
  close()
  const { database } = pathsIn(folder)
  const bytes = readFileSync(database)
  const at = bytes.indexOf('harmless.txt')
  expect(at).toBeGreaterThan(0)
  bytes.write('innocent.txt', at)
  writeFileSync(database, bytes)
  expect(verify().ok).toBe(true)
  expect(deep().problems).toMatchObject([{ kind: 'differs', callId: 'a', message: expect.stringContaining('arguments') }])
})

test('a cleared memory keeps its receipts, and they still verify', () => {
  const { memory, recorder, close } = openRecord(folder)
  recorder.external(runOf(1), started('hi'))
  recorder.denied(runOf(1), refusing(callOf('a')))
  recorder.finished(runOf(1), finish, '')
  const leave = (input: object) =>
    void recorder.recordAction({ conversationId: 'none', tool: 'memory.clear', input: { ...input }, risk: 'medium' })
  clearConversations(memory, { yes: true, leave })
  expect(recorder.denied(runOf(2), refusing(callOf('b')))).toEndWith('-3')
  close()
  expect(verify()).toMatchObject({ ok: true, count: 3, completeness: 'proved by checkpoint' })
  expect(deep()).toMatchObject({ ok: true, attempts: 1, withoutAttempt: 2, withoutRun: { holes: [] } })
})

test('a deleted database is not begun anew beside receipts, not even beside a single one', () => {
  const first = openRecord(folder)
  first.recorder.denied(runOf(1), refusing(callOf('a')))
  first.close()
  rmSync(pathsIn(folder).database)
  const second = openRecord(folder)
  const lost = 'the database is new or was replaced: it knows nothing of the 1 receipt in the log'
  expect(() => second.recorder.recover()).toThrow(lost)
  expect(() => second.recorder.denied(runOf(2), refusing(callOf('b')))).toThrow(lost)
  expect([...attempts(second.memory.store)]).toEqual([])
  second.close()
  expect(verify()).toMatchObject({ ok: false, problems: [{ kind: 'database', record: 1 }] })
})

test('a refusal whose commit a crash undid is accounted for at the next start, and a run that was erased is not', () => {
  const { memory, recorder, close } = openRecord(folder)
  recorder.external(runOf(1), started('hi'))
  recorder.denied(runOf(1), refusing(callOf('a')))
  expect(() =>
    memory.transaction(() => {
      recorder.denied(runOf(1), refusing(callOf('b')))
      throw new Error('power cut')
    }),
  ).toThrow('power cut')
  expect(recorder.recover()).toMatchObject({ adopted: 1 })
  close()
  expect(deep().withoutRun).toMatchObject({ holes: [], older: [] })
  const known = { counted: 3, older: 0, wordsOf: () => undefined }
  expect(deepVerify(pathsIn(folder).log, [], known).withoutRun?.holes).toEqual([{ first: 1, last: 1 }])
  expect(deepVerify(pathsIn(folder).log, [], { ...known, older: 1 }).withoutRun).toMatchObject({
    holes: [],
    older: [{ first: 1, last: 1 }],
  })
})
