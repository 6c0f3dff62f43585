/** One receipt for one attempt, wherever a process dies between the append to the log and the commit of the result. */

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clearConversations } from '../../src/memory/conversations/delete-conversations.ts'
import { acting, callOf, finish, judgement, refusing, runOf, started } from '../../src/memory/fixture.ts'
import { attempts as attemptsIn } from '../../src/memory/journal/attempts.ts'
import { readKey } from '../../src/receipts/key.ts'
import { rotate } from '../../src/receipts/rotate.ts'
import { filesOf } from '../../src/receipts/segments.ts'
import { deepVerify } from '../../src/receipts/verify/deep.ts'
import { verifyReceipts } from '../../src/receipts/verify/verify-chain.ts'
import { openRecord, pathsIn } from '../support/record.ts'
import { unevenReceipts } from './oracle.ts'

const child = join(import.meta.dir, '../support/crash-child.ts')
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-orders-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const statuses = ['allowed', 'denied', 'failed'] as const

async function killed(point: 'begun' | 'appended' | 'committed' | 'recover', status: string = statuses[0]): Promise<void> {
  const victim = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', child, folder, point, status], { stderr: 'inherit' })
  await victim.exited
  expect(victim.signalCode).toBe('SIGKILL')
}

/** What a start finds and puts right. */
function recover() {
  const { recorder, close } = openRecord(folder)
  const recovery = recorder.recover()
  close()
  return recovery
}

/** "call id status" of the journal, and the statuses of calls in the log; everything else must hold in any case. */
function left() {
  const { memory, close } = openRecord(folder)
  const { log, head, key } = pathsIn(folder)
  const attempts = [...attemptsIn(memory.store)]
  const receipts = filesOf(log).flatMap((path) => readFileSync(path, 'utf8').split('\n').filter(Boolean))
  const verified = verifyReceipts({ path: log, headPath: head, key: readKey(key), checkpoint: memory.checkpoint.get() })
  expect(verified).toMatchObject({ ok: true, problems: [] })
  expect(deepVerify(log, attempts)).toMatchObject({ ok: true, pending: 0, problems: [] })
  const parsed = receipts.map((line) => JSON.parse(line))
  expect(unevenReceipts(parsed, attempts)).toEqual([])
  const ofCalls = parsed.filter(({ tool }) => tool !== 'receipts.adopted')
  const turns = memory.conversations.show('conversation-1').filter(({ role }) => role === 'tool')
  close()
  return {
    attempts: attempts.map(({ callId, receiptId, status }) => `${callId} ${receiptId?.split('-')[2]} ${status}`),
    log: ofCalls.map(({ status }) => status),
    said: turns.map(({ content }) => content),
  }
}

/** As if the process that wrote them had been killed. */
function orphanAll(): void {
  const db = new Database(pathsIn(folder).database)
  db.run('UPDATE runs SET owner = ?', [`${process.pid}@1-deadbeef`])
  db.close()
}

describe('killed by -9', () => {
  test('before the append: the outcome is unknown, and says so', async () => {
    await killed('begun')
    expect(recover().interrupted).toMatchObject([{ runId: 'run-1', callId: 'call_1' }])
    expect(left()).toMatchObject({ attempts: ['call_1 1 failed'], log: ['failed'], said: ['Failed: interrupted: outcome unknown'] })
  })

  test.each(statuses)('between append and commit of what was %s: the start takes the receipt that the log has', async (status) => {
    await killed('appended', status)
    const { interrupted, closedRuns, adopted } = recover()
    expect([interrupted, closedRuns, adopted]).toEqual([
      [expect.objectContaining({ callId: 'call_1', receipt: expect.stringMatching(/-1$/) })],
      ['run-1'],
      1,
    ])
    const { attempts, log, said } = left()
    expect([attempts, log]).toEqual([[`call_1 1 ${status}`], [status]])
    expect(said).toEqual([expect.stringContaining('interrupted: the call ended, but what it returned was lost')])
    expect(recover()).toEqual({ interrupted: [], closedRuns: [], adopted: 0, tornBytes: 0, undecided: [] })
  })

  test('after the commit: nothing is written a second time', async () => {
    await killed('committed')
    expect(recover()).toMatchObject({ interrupted: [], closedRuns: ['run-1'], adopted: 0 })
    expect(left()).toMatchObject({ attempts: ['call_1 1 allowed'], log: ['allowed'], said: ['what it returned'] })
  })

  test('and the start that puts it right is killed too, between its own append and commit', async () => {
    await killed('begun')
    await killed('recover')
    expect(recover()).toMatchObject({ interrupted: [{ callId: 'call_1' }], adopted: 1 })
    expect(left()).toMatchObject({ attempts: ['call_1 1 failed'], log: ['failed'] })
  })

  test('and another process appends before anybody starts again', async () => {
    await killed('appended')
    const { recorder, close } = openRecord(folder)
    recorder.denied(runOf(2), refusing(callOf('call_1', { path: 'other.txt' })))
    close()
    expect(recover()).toMatchObject({ interrupted: [{ callId: 'call_1' }], adopted: 0 })
    expect(left()).toMatchObject({ attempts: ['call_1 3 denied', 'call_1 1 allowed'], log: ['allowed', 'denied'] })
  })

  test('and the log is cut into segments before anybody starts again', async () => {
    await killed('appended')
    const { memory, close } = openRecord(folder)
    const draft = {
      at: 1,
      conversationId: '',
      tool: 'rotate',
      argsHash: '0'.repeat(64),
      resultHash: '0'.repeat(64),
      status: 'allowed',
      risk: 'low',
    } as const
    memory.transaction(() => {
      const rotated = rotate({ paths: pathsIn(folder), checkpoint: memory.checkpoint.get(), draft })
      if (!rotated.ok || !rotated.checkpoint) throw new Error('not rotated')
      memory.checkpoint.put(rotated.checkpoint)
    })
    close()
    expect(recover().interrupted).toMatchObject([{ callId: 'call_1', receipt: expect.stringMatching(/-1$/) }])
    expect(left()).toMatchObject({ attempts: ['call_1 1 allowed'], log: ['allowed', 'allowed'] })
  })

  test('and memory is cleared before anybody starts again: nothing comes back, and no second receipt is written', async () => {
    await killed('appended')
    const { memory, close } = openRecord(folder)
    expect(clearConversations(memory, { yes: true })).toMatchObject({ ok: true, underWay: 0 })
    close()
    expect(recover()).toMatchObject({ interrupted: [{ callId: 'call_1' }], closedRuns: [] })
    expect(left()).toEqual({ attempts: [], log: ['allowed'], said: [] })
    expect(recover().interrupted).toEqual([])
  })
})

describe('a receipt belongs to one call alone', () => {
  const run = runOf(1)
  const done = (id: string) => ({ type: 'tool.done' as const, id, outcome: { status: 'allowed' as const, output: `of ${id}` } })

  /** The step is rolled back after its receipt is on disk, as when the disk has no room for the commit. */
  function uncommitted({ memory }: Pick<ReturnType<typeof openRecord>, 'memory'>, step: () => unknown): void {
    const lost = () =>
      memory.transaction(() => {
        step()
        throw new Error('disk full')
      })
    expect(lost).toThrow('disk full')
  }

  test('of three calls alike, one has its result and one its receipt: only the third is unknown', () => {
    const record = openRecord(folder)
    const { recorder } = record
    recorder.external(run, started('hi'))
    for (const id of ['a', 'b', 'c']) recorder.intent(run, acting(callOf(id)))
    recorder.external(run, done('b'))
    uncommitted(record, () => recorder.external(run, done('c')))
    record.close()
    orphanAll()
    expect(recover().interrupted.map(({ callId }) => callId)).toEqual(['a', 'c'])
    expect(left()).toMatchObject({ attempts: ['b 1 allowed', 'a 2 allowed', 'c 4 failed'], log: ['allowed', 'allowed', 'failed'] })
  })

  test('a process that could not commit and lived on: its receipt is taken when it is dead', () => {
    const record = openRecord(folder)
    const { recorder } = record
    recorder.external(run, started('hi'))
    recorder.intent(run, acting(callOf('a')))
    uncommitted(record, () => recorder.external(run, done('a')))
    expect(recorder.recover().interrupted).toEqual([])
    recorder.external(runOf(2), started('more'))
    recorder.intent(runOf(2), acting(callOf('a', { path: 'b.txt' })))
    recorder.external(runOf(2), done('a'))
    recorder.finished(runOf(2), finish, '')
    record.close()
    orphanAll()
    expect(recover().interrupted).toMatchObject([{ runId: 'run-1', callId: 'a' }])
    expect(left()).toMatchObject({ attempts: ['a 3 allowed', 'a 1 allowed'], log: ['allowed', 'allowed'] })
  })

  test('a refusal that was lost before the same call began says nothing about that call', () => {
    const record = openRecord(folder)
    const { recorder } = record
    recorder.external(run, started('hi'))
    const call = callOf('a')
    uncommitted(record, () => recorder.denied(run, { ...refusing(call), judgement }))
    recorder.recover()
    recorder.intent(run, acting(call))
    record.close()
    orphanAll()
    expect(recover().interrupted).toMatchObject([{ callId: 'a', receipt: expect.stringMatching(/-3$/) }])
    const { memory, close } = openRecord(folder)
    expect([...attemptsIn(memory.store)]).toMatchObject([{ callId: 'a', status: 'failed' }])
    close()
  })

  test.each([
    ['another conversation', runOf(2, { conversationId: 'conversation-2' }), callOf('a'), undefined],
    ['other arguments', runOf(2), callOf('a', { path: 'b.txt' }), undefined],
    ['another tool', runOf(2), { ...callOf('a'), name: 'file_list' }, undefined],
    ['another approval', runOf(2), callOf('a'), 'terminal'],
  ])('that of %s is not taken', (_, other, call, approval) => {
    const record = openRecord(folder)
    const { recorder } = record
    recorder.external(run, started('hi'))
    recorder.intent(run, acting(callOf('a')))
    recorder.external(other, started('hi'))
    recorder.intent(other, acting(call, approval))
    uncommitted(record, () => recorder.external(other, done('a')))
    record.close()
    orphanAll()
    expect(recover().interrupted).toHaveLength(2)
    expect(left()).toMatchObject({ attempts: ['a 3 failed', 'a 1 allowed'], log: ['allowed', 'failed'] })
  })
})

test('a journal that calls a result lost does not get away with other words, or another status', async () => {
  await killed('appended', 'allowed')
  recover()
  const { database, log } = pathsIn(folder)
  const altered = (from: string, to: string) => {
    const db = new Database(database)
    db.run(`UPDATE journal SET body = replace(body, ?, ?) WHERE type = 'tool.done'`, [from, to])
    db.close()
    const { memory, close } = openRecord(folder)
    const { problems } = deepVerify(log, attemptsIn(memory.store))
    close()
    const back = new Database(database)
    back.run(`UPDATE journal SET body = replace(body, ?, ?) WHERE type = 'tool.done'`, [to, from])
    back.close()
    return problems
  }
  expect(altered('what it returned was lost', 'it returned 900 euros')).toMatchObject([
    { kind: 'differs', message: expect.stringContaining('result') },
  ])
  expect(altered('"status":"allowed"', '"status":"denied"')).toMatchObject([
    { kind: 'differs', message: expect.stringContaining('status') },
  ])
})
