import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { changeTexts } from '../kit/json.ts'
import type { ExternalEvent } from '../runtime/event.ts'
import {
  acting,
  callOf,
  createRecordStage,
  finish,
  fullReceipts,
  receiptsBy,
  recordFailure,
  refusing,
  replied,
  runOf,
  started,
} from './fixture.ts'
import { attempts } from './journal/attempts.ts'
import { isAlive, thisProcess } from './journal/process-owner.ts'
import { argsHashOf, hashJson, resultHashOf } from './journal/receipt-draft.ts'
import { openMemory } from './memory.ts'
import type { ReceiptPort, RecordWriterOptions } from './record-writer.ts'

let stage: ReturnType<typeof createRecordStage>
beforeEach(() => {
  stage = createRecordStage()
})
afterEach(() => stage.memoryStage.remove())

const recorder: (typeof stage)['recorder'] = (own) => stage.recorder(own)
const run = runOf(1)
const allowed: ExternalEvent = { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } }

const takingOut =
  (secret: string): RecordWriterOptions['redact'] =>
  (event) =>
    changeTexts(event, (text) => text.replaceAll(secret, '[secret]'))

test('if the receipt fails, the result is not journalled, the intent stays open and the run must end', () => {
  recorder().intent(run, acting(callOf('a')))
  const error = recordFailure(() => recorder({ receipts: receiptsBy(fullReceipts) }).external(run, allowed))
  expect(error).toMatchObject({ code: 'full', integrity: false, message: 'the disk is full' })
  expect(stage.memoryStage.memory.journal.events('run-1').map(({ type }) => type)).toEqual(['act'])
  expect(stage.memoryStage.memory.journal.openIntent('run-1', 'a')).toBeDefined()
  expect(stage.memoryStage.memory.conversations.show('conversation-1')).toEqual([])
  expect(stage.memoryStage.memory.checkpoint.get()).toBeUndefined()
})

test('if the receipt of a refusal fails, the refusal is not journalled either', () => {
  recordFailure(() => recorder({ receipts: receiptsBy(fullReceipts) }).denied(run, refusing(callOf('a'))))
  expect(stage.memoryStage.memory.journal.events('run-1')).toEqual([])
})

test('an act whose receipt cannot be kept is not begun; after a failed append the disk must take a write first', () => {
  const { port } = stage.counted
  const asked: boolean[] = []
  const state = { proof: true, append: true }
  const failure = { code: 'full' as const, message: 'the disk is full' }
  const begin: ReceiptPort['begin'] = (...known) => {
    const opened = port.begin(...known)
    if (!opened.ok) return opened
    const prove = (byWriting: boolean) =>
      asked.push(byWriting) > 0 && state.proof ? { ok: true as const } : { ok: false as const, failure }
    const write = () => (state.append ? opened.ledger.write() : { ok: false as const, failure })
    return { ok: true, ledger: { ...opened.ledger, prove, write } }
  }
  const { intent, external } = recorder({ receipts: { ...port, begin } })
  state.proof = false
  const refused = recordFailure(() => intent(run, acting(callOf('a'))))
  expect(refused).toMatchObject({ code: 'no_receipt', integrity: true, message: expect.stringContaining('the disk is full') })
  expect(stage.memoryStage.memory.journal.events('run-1')).toEqual([])
  state.proof = true
  intent(run, acting(callOf('a')))
  state.append = false
  expect(recordFailure(() => external(run, allowed))).toMatchObject({ code: 'full', integrity: false })
  intent(run, acting(callOf('b')))
  intent(run, acting(callOf('c')))
  expect(asked).toEqual([false, false, true, false])
})

test('a result without an intent, or a second one, is refused', () => {
  const { external, intent } = recorder()
  expect(recordFailure(() => external(run, allowed)).code).toBe('no_intent')
  intent(run, acting(callOf('a')))
  external(run, allowed)
  expect(recordFailure(() => external(run, allowed)).code).toBe('no_intent')
  expect(stage.counted.drafts).toHaveLength(1)
})

test('trouble with the database is a RecordFailure as well, and then no receipt is kept for long', () => {
  const holder = new Database(stage.memoryStage.path)
  const hasty = openMemory({ path: stage.memoryStage.path, log: () => {}, now: () => 0, busyTimeoutMs: 10 })
  if (!hasty.ok) throw new Error(hasty.failure.message)
  holder.run('BEGIN IMMEDIATE')
  const { external, intent, denied, finished, recover } = recorder({ memory: hasty.memory })
  const steps = [
    () => external(run, started('hi')),
    () => intent(run, acting(callOf('a'))),
    () => denied(run, refusing(callOf('a'))),
    () => finished(run, finish, ''),
    recover,
  ]
  expect(steps.map((step) => recordFailure(step).code)).toEqual(steps.map(() => 'locked'))
  expect(stage.counted.drafts).toEqual([])
  holder.close()
  hasty.memory.close()
})

test('a bug is not dressed up as trouble with the record', () => {
  const bug = () => {
    throw new TypeError('bug')
  }
  recorder().intent(run, acting(callOf('a')))
  expect(() => recorder({ receipts: receiptsBy(bug) }).external(run, allowed)).toThrow(TypeError)
  expect(stage.memoryStage.memory.journal.openIntent('run-1', 'a')).toBeDefined()
})

test('a result leaves a receipt of exactly what was asked and what came of it', () => {
  const { external, intent } = recorder()
  const call = callOf('a', { path: 'b.txt', deep: { z: 1, a: [1, 2] } })
  intent(run, acting(call, 'user'))
  const outcome = { status: 'failed' as const, output: 'some', error: 'broken', metadata: { code: 1 } }
  const returned = external(run, { type: 'tool.done', id: 'a', outcome })
  expect(returned).toEqual({ type: 'tool.done', id: 'a', outcome: { ...outcome, receipt: 'receipt-1' } })
  expect(stage.counted.drafts).toEqual([
    {
      at: expect.any(Number),
      conversationId: 'conversation-1',
      tool: 'file_read',
      argsHash: Bun.SHA256.hash('{"deep":{"a":[1,2],"z":1},"path":"b.txt"}', 'hex'),
      resultHash: Bun.SHA256.hash('{"error":"broken","metadata":{"code":1},"output":"some","status":"failed"}', 'hex'),
      status: 'failed',
      risk: 'low',
      approval: 'user',
      error: 'broken',
    },
  ])
  expect(stage.memoryStage.memory.journal.events('run-1').at(-1)?.body).toMatchObject({ outcome: { receipt: 'receipt-1' } })
  expect(stage.memoryStage.memory.checkpoint.get()).toEqual({ logId: 'log', count: 1, head: 'h1', mac: 'm1', size: 1 })
  expect(stage.memoryStage.memory.journal.openIntent('run-1', 'a')).toBeUndefined()
})

test('a refusal leaves a receipt and a line for people', () => {
  const { denied } = recorder()
  expect(denied(run, refusing(callOf('a')))).toBe('receipt-1')
  expect(stage.counted.drafts).toMatchObject([
    { status: 'denied', risk: 'high', tool: 'file_read', error: 'safety: outside the workspace' },
  ])
  expect(stage.memoryStage.memory.journal.events('run-1')).toMatchObject([
    { kind: 'note', type: 'deny', body: { by: 'safety', receipt: 'receipt-1' } },
  ])
})

test('without receipts everything else is kept', () => {
  const { external, intent, denied } = recorder({ receipts: undefined })
  intent(run, acting(callOf('a')))
  expect(external(run, allowed)).toEqual(allowed)
  expect(denied(run, refusing(callOf('b')))).toBeUndefined()
  expect(stage.memoryStage.memory.journal.events('run-1')).toHaveLength(3)
})

test('secrets are taken out of all that is stored, keys and inputs too, and the hashes match what is stored', () => {
  const redact = takingOut('hunter2')
  const { external, intent, denied, finished } = recorder({ redact })
  external(run, started('my password is hunter2'))
  external(
    run,
    replied([
      { type: 'text', text: 'hunter2' },
      { type: 'call', ...callOf('a', { hunter2: 'x', path: 'hunter2' }) },
    ]),
  )
  intent(run, acting(callOf('a', { hunter2: 'x', path: 'hunter2' })))
  external(run, {
    type: 'tool.done',
    id: 'a',
    outcome: { status: 'failed', output: 'hunter2', error: 'hunter2', metadata: { list: ['hunter2', 1, null] } },
  })
  denied(run, { ...refusing(callOf('b')), reason: 'hunter2' })
  finished(run, { type: 'finish', ending: { ...finish.ending, message: 'hunter2' } }, 'd')
  expect(
    JSON.stringify([
      stage.counted.drafts,
      stage.memoryStage.memory.journal.events('run-1'),
      stage.memoryStage.memory.journal.runs({ limit: 1 }),
      [...stage.memoryStage.memory.conversations.exportJsonl()],
    ]),
  ).not.toContain('hunter2')
  const done = stage.memoryStage.memory.journal.events('run-1').find(({ type }) => type === 'tool.done')
  expect(done?.body).toMatchObject({ outcome: { metadata: { list: ['[secret]', 1, null] } } })
  expect(stage.counted.drafts[0]?.argsHash).toBe(hashJson({ '[secret]': 'x', path: '[secret]' }))
  expect([...attempts(stage.memoryStage.memory.store)]).toMatchObject(
    stage.counted.drafts.map(({ argsHash, resultHash }) => ({ argsHash, resultHash })),
  )
})

test('arguments and results that have no canonical form are hashed all the same', () => {
  expect(argsHashOf({ input: { '\ud800': 'a\udc00' } })).toBe(hashJson({ '\ufffd': 'a\ufffd' }))
  expect(argsHashOf({ input: {}, malformed: '{"a":' })).toBe(hashJson('{"a":'))
  expect(resultHashOf({ status: 'allowed', output: '', metadata: { ratio: Number.NaN } })).toBe(
    hashJson({ status: 'allowed', output: '', metadata: { ratio: null } }),
  )
  expect(resultHashOf({ status: 'allowed', output: '', receipt: 'r' })).toBe(hashJson({ status: 'allowed', output: '' }))
})

test('the attempts of the journal have the hashes of their receipts, denials too, and pending ones say so', () => {
  const { external, intent, denied } = recorder()
  intent(run, acting(callOf('a', { path: 'x' })))
  external(run, allowed)
  denied(run, refusing(callOf('b', { path: 'y' })))
  intent(run, acting(callOf('c')))
  const found = [...attempts(stage.memoryStage.memory.store)]
  expect(found.map(({ callId, status, pending, receiptId }) => ({ callId, status, pending, receiptId }))).toEqual([
    { callId: 'a', status: 'allowed', pending: false, receiptId: 'receipt-1' },
    { callId: 'b', status: 'denied', pending: false, receiptId: 'receipt-2' },
    { callId: 'c', status: undefined, pending: true, receiptId: undefined },
  ])
  expect(found.slice(0, 2)).toMatchObject(
    stage.counted.drafts.map(({ argsHash, resultHash, tool, conversationId }) => ({ argsHash, resultHash, tool, conversationId })),
  )
})

test('a finished run has its end, its digest and a line in the log', () => {
  const { external, finished } = recorder()
  external(run, started('hi'))
  finished(run, finish, 'abc')
  expect(stage.memoryStage.memory.journal.run('run-1')).toMatchObject({ code: 'answered', message: 'done', digest: 'abc' })
  expect(stage.memoryStage.memory.journal.events('run-1').at(-1)).toMatchObject({ kind: 'note', type: 'finish', body: { digest: 'abc' } })
})

test('a process is known by number and start: a later one with its number is another', () => {
  expect(isAlive(thisProcess())).toBe(true)
  for (const owner of ['', 'x', '0@0', '-1@0', `${process.pid}@1-00000000`, '1 @0', '4194999@0', '4194999@5-x'])
    expect(isAlive(owner)).toBe(false)
  expect(isAlive(`${process.pid}@0`)).toBe(true)
})
