import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemory } from '../../memory/memory.ts'
import { createRecordWriter } from '../../memory/record-writer.ts'
import { recoverRuns } from '../../memory/recovery/interrupted-runs.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import { createRedactor } from '../../security/redaction/redact.ts'
import { type HomeOptions, openHome } from './open-home.ts'

let folder = ''
const counts = { opened: 0, closed: 0, watched: 0 }
const stops: ((reason: string) => void)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-host-'))
  Object.assign(counts, { opened: 0, closed: 0, watched: 0 })
  stops.length = 0
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function options(own: Partial<HomeOptions> = {}): HomeOptions {
  const database = own.database ?? join(folder, 'memory.sqlite')
  return {
    database,
    key: 'stop',
    estop: join(folder, 'ESTOP'),
    redactor: createRedactor,
    recover: async (record) => void recoverRuns(record),
    watchStop(onStop) {
      counts.watched += 1
      stops.push(onStop)
      return () => {
        counts.watched -= 1
      }
    },
    open(redact) {
      const opened = openMemory({ path: database, log: () => {}, now: Date.now })
      if (!opened.ok) throw new Error(opened.failure.message)
      counts.opened += 1
      const { memory } = opened
      const close = () => {
        counts.closed += 1
        memory.close()
      }
      return { memory: { ...memory, close }, record: createRecordWriter({ memory, log: () => {}, now: Date.now, redact }) }
    },
    ...own,
  }
}

const run: RunIdentity = { runId: 'r', conversationId: 'c', turnId: 't', provider: 'p', model: 'm', channel: 'test' }
const started = (prompt: string) =>
  ({ kind: 'external', event: { type: 'run.start', prompt, mode: 'structured', at: 0, model: 'm' } }) as const

test('a home is opened once, watched once, and closed by its last user', async () => {
  const homes = [await openHome(options()), await openHome(options()), await openHome(options())]
  expect(counts).toEqual({ opened: 1, closed: 0, watched: 1 })
  homes[0]?.release()
  homes[0]?.release()
  homes[1]?.release()
  expect(counts.closed).toBe(0)
  homes[2]?.release()
  expect(counts).toEqual({ opened: 1, closed: 1, watched: 0 })
  ;(await openHome(options())).release()
  expect(counts).toEqual({ opened: 2, closed: 2, watched: 0 })
})

test('two paths to one database are one home; another place of the emergency stop is another', async () => {
  const first = await openHome(options())
  symlinkSync(join(folder, 'memory.sqlite'), join(folder, 'other.sqlite'))
  const [same, other] = [await openHome(options({ database: join(folder, 'other.sqlite') })), await openHome(options({ key: 'elsewhere' }))]
  expect(same.memory).toBe(first.memory)
  expect(other.memory).not.toBe(first.memory)
  for (const home of [first, same, other]) home.release()
})

test('what any user of a home keeps secret is taken out of what all of them store, also when it is learned later or its user has gone', async () => {
  const redactors = [createRedactor(), createRedactor(), createRedactor()] as const
  const [first, second, third] = [
    await openHome(options({ redactor: () => redactors[0] })),
    await openHome(options({ redactor: () => redactors[1] })),
    await openHome(options({ redactor: () => redactors[2] })),
  ]
  redactors[0].register('correct-horse-1', 'ONE')
  redactors[1].register('battery-staple-2', 'TWO')
  await first.recorder.commit(run, [started('correct-horse-1 and battery-staple-2 and others')])
  second.release()
  redactors[2].register('tr0ub4dor-three-3')
  await third.recorder.commit({ ...run, runId: 'r2' }, [started('battery-staple-2 and tr0ub4dor-three-3')])
  expect(JSON.stringify(first.memory.journal.events('r'))).toContain('[redacted:ONE] and [redacted:TWO] and others')
  expect(JSON.stringify(first.memory.journal.events('r2'))).toContain('[redacted:TWO] and [redacted]')
  for (const home of [first, third]) home.release()
})

test('a user whose start cannot put right what it finds has not joined, and leaves the others alone', async () => {
  const altered = async () => {
    throw new Error('the receipts were altered')
  }
  await expect(openHome(options({ recover: altered }))).rejects.toThrow('altered')
  expect(counts).toEqual({ opened: 1, closed: 1, watched: 0 })
  const good = await openHome(options())
  await expect(openHome(options({ recover: altered }))).rejects.toThrow('altered')
  expect(good.memory.journal.runs({ limit: 1 })).toEqual([])
  good.release()
  expect(counts).toEqual({ opened: 2, closed: 2, watched: 0 })
})

test('every user hears the emergency stop until it goes', async () => {
  const heard: string[] = []
  const [first, second] = [await openHome(options()), await openHome(options())]
  const deaf = first.onStop((reason) => heard.push(`first ${reason}`))
  second.onStop((reason) => heard.push(`second ${reason}`))
  stops[0]?.('fire')
  deaf()
  stops[0]?.('again')
  expect(heard).toEqual(['first fire', 'second fire', 'second again'])
  for (const home of [first, second]) home.release()
})

test('a home that cannot be opened leaves nothing behind', async () => {
  const broken = options({
    open: () => {
      throw new Error('no disk')
    },
  })
  await expect(openHome(broken)).rejects.toThrow('no disk')
  expect(counts.watched).toBe(0)
  ;(await openHome(options())).release()
  expect(counts).toEqual({ opened: 1, closed: 1, watched: 0 })
})
