import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, fdatasyncSync, readFileSync, rmSync, statSync } from 'node:fs'
import type { Checkpoint, Ledger } from './contract.ts'
import { createHome, draft, type Home, required } from './fixture.ts'
import { createLedgers } from './ledger.ts'
import { verifyReceipts } from './verify/verify-chain.ts'

let home: Home
let sync: (file: number) => void
let syncs: number
beforeEach(() => {
  home = createHome()
  sync = fdatasyncSync
  syncs = 0
})
afterEach(() => home.remove())

const logId = 'a'.repeat(32)

function withLedger<T>(checkpoint: Checkpoint | undefined, use: (ledger: Ledger) => T): T {
  const counted = (file: number) => {
    syncs += 1
    sync(file)
  }
  const opened = createLedgers({ paths: home.paths, sync: counted })(checkpoint, logId)
  if (!opened.ok) throw new Error(opened.failure.message)
  try {
    return use(opened.ledger)
  } finally {
    opened.ledger.close()
  }
}
const proved = (checkpoint?: Checkpoint, byWriting = false) => withLedger(checkpoint, (ledger) => ledger.prove(byWriting))

describe('an act is refused', () => {
  const refuses = (): never => {
    throw Object.assign(new Error('EIO: the disk is broken'), { code: 'EIO', errno: -5 })
  }

  test('when the new log cannot be synced', () => {
    sync = refuses
    expect(proved()).toMatchObject({ ok: false, failure: { code: 'unreadable', message: expect.stringContaining('EIO') } })
    expect(statSync(home.paths.log).size).toBe(0)
  })

  test('when the head file cannot be written', () => {
    const checkpoint = home.fill(1)
    Bun.spawnSync(['rm', home.paths.head])
    Bun.spawnSync(['mkdir', home.paths.head])
    expect(proved(checkpoint)).toMatchObject({ ok: false, failure: { message: expect.stringContaining('EISDIR') } })
  })

  test('when a write failed before and the disk still refuses one; the log keeps its receipts', () => {
    const checkpoint = home.fill(2)
    const before = readFileSync(home.paths.log, 'utf8')
    sync = refuses
    expect(proved(checkpoint)).toEqual({ ok: true })
    expect(proved(checkpoint, true)).toMatchObject({ ok: false })
    sync = fdatasyncSync
    expect(proved(checkpoint, true)).toEqual({ ok: true })
    expect(readFileSync(home.paths.log, 'utf8')).toBe(before)
  })
})

test('a new log costs one sync, an existing one none, and an empty one that somebody made is synced before it is written to', () => {
  expect([proved(), syncs]).toEqual([{ ok: true }, 1])
  expect([proved(), syncs]).toEqual([{ ok: true }, 3])
  const checkpoint = home.fill(1)
  expect([proved(checkpoint), syncs]).toEqual([{ ok: true }, 3])
})

test('a process that is killed while it proves leaves half a line, which the next one cuts off', () => {
  proved()
  appendFileSync(home.paths.log, ' '.repeat(4096))
  expect(withLedger(undefined, (ledger) => ledger.prove(false))).toEqual({ ok: true })
  const appended = withLedger(undefined, (ledger) => {
    ledger.add(draft(0))
    return ledger.write()
  })
  if (!appended.ok) throw new Error(appended.failure.message)
  expect(required(appended.checkpoint)).toMatchObject({ count: 1, size: statSync(home.paths.log).size })
  rmSync(home.paths.log)
  expect(() => proved(appended.checkpoint)).toThrow('missing or empty')
})

test('a process that is killed while it proves an empty log leaves a checkpoint of none after recovery, and the log begins', () => {
  proved()
  appendFileSync(home.paths.log, ' '.repeat(4096))
  const recovered = withLedger(undefined, (ledger) => ledger.write())
  if (!recovered.ok) throw new Error(recovered.failure.message)
  const none = required(recovered.checkpoint)
  expect(none).toMatchObject({ count: 0, size: 0 })
  const verified = verifyReceipts({
    path: home.paths.log,
    headPath: home.paths.head,
    key: { ok: true, key: home.key() },
    checkpoint: none,
    ownLog: none.logId,
  })
  expect(verified.problems).toEqual([])
  expect(proved(none)).toEqual({ ok: true })
  const appended = withLedger(none, (ledger) => {
    ledger.add(draft(0))
    return ledger.write()
  })
  if (!appended.ok) throw new Error(appended.failure.message)
  expect(required(appended.checkpoint)).toMatchObject({ count: 1, logId: none.logId })
})
