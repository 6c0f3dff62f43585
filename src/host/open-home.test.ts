import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemory } from '../memory/db.ts'
import { createRecordWriter } from '../memory/record-writer.ts'
import type { RunIdentity } from '../runtime/port.ts'
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
    redact: (value) => value,
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

test('a home is opened once, watched once, and closed by its last user', () => {
  const homes = [openHome(options()), openHome(options()), openHome(options())]
  expect(counts).toEqual({ opened: 1, closed: 0, watched: 1 })
  homes[0]?.release()
  homes[0]?.release()
  homes[1]?.release()
  expect(counts.closed).toBe(0)
  homes[2]?.release()
  expect(counts).toEqual({ opened: 1, closed: 1, watched: 0 })
  openHome(options()).release()
  expect(counts).toEqual({ opened: 2, closed: 2, watched: 0 })
})

test('two paths to one database are one home; another place of the emergency stop is another', () => {
  const first = openHome(options())
  symlinkSync(join(folder, 'memory.sqlite'), join(folder, 'other.sqlite'))
  const [same, other] = [openHome(options({ database: join(folder, 'other.sqlite') })), openHome(options({ key: 'elsewhere' }))]
  expect(same.memory).toBe(first.memory)
  expect(other.memory).not.toBe(first.memory)
  for (const home of [first, same, other]) home.release()
})

test('what any user of a home keeps secret is taken out of what all of them store', async () => {
  const hiding = (secret: string) => options({ redact: (value) => JSON.parse(JSON.stringify(value).replaceAll(secret, '***')) })
  const [first, second] = [openHome(hiding('hunter2')), openHome(hiding('swordfish'))]
  await first.recorder.commit(run, [started('hunter2 and swordfish')])
  expect(JSON.stringify(second.memory.journal.events('r'))).toContain('*** and ***')
  for (const home of [first, second]) home.release()
})

test('every user hears the emergency stop until it goes', () => {
  const heard: string[] = []
  const [first, second] = [openHome(options()), openHome(options())]
  const deaf = first.onStop((reason) => heard.push(`first ${reason}`))
  second.onStop((reason) => heard.push(`second ${reason}`))
  stops[0]?.('fire')
  deaf()
  stops[0]?.('again')
  expect(heard).toEqual(['first fire', 'second fire', 'second again'])
  for (const home of [first, second]) home.release()
})

test('a home that cannot be opened leaves nothing behind', () => {
  const broken = options({
    open: () => {
      throw new Error('no disk')
    },
  })
  expect(() => openHome(broken)).toThrow('no disk')
  expect(counts.watched).toBe(0)
  openHome(options()).release()
  expect(counts).toEqual({ opened: 1, closed: 1, watched: 0 })
})
