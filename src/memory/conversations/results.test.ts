import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sha256 } from '../../kit/sha256.ts'
import type { Trim } from '../../runtime/event.ts'
import { messagesDigest } from '../../runtime/request/turn-messages.ts'
import { acting, callOf, createMemoryStage, finish, type MemoryStage, recordSteps, replied, runOf, started } from '../fixture.ts'
import { deleteConversation } from './delete-conversations.ts'
import type { Results } from './results.ts'
import { createResults } from './results.ts'

let stage: MemoryStage
let results: Results
beforeEach(() => {
  stage = createMemoryStage()
  results = createResults(stage.memory.store)
})
afterEach(() => stage.remove())

const recorder = () => recordSteps({ memory: stage.memory, log: () => {}, now: () => stage.clock.now++, redact: (event) => event })

/** Records a turn with one call and its result. */
function turn(
  number: number,
  output: string,
  { whole, conversationId = 'conversation-1' }: { whole?: string; conversationId?: string } = {},
): void {
  const [run, { external, intent, finished }] = [runOf(number, { conversationId }), recorder()]
  external(run, started('go'))
  external(run, replied([{ type: 'call', ...callOf('a') }]))
  intent(run, acting(callOf('a')))
  const metadata = whole === undefined ? {} : { metadata: { whole: { bytes: whole.length, sha256: sha256(whole) } } }
  external(run, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output, ...metadata } })
  external(run, replied([{ type: 'text', text: 'done' }]))
  finished(run, finish, '')
}

const keep = (number: number, text: string, most = 1_000_000) =>
  results.keep({ runId: `run-${number}`, callId: 'a', conversationId: 'conversation-1', text }, stage.clock.now++, most)

test('a result of another conversation, an unknown one and an id of another form are not found', () => {
  turn(1, 'secret', { conversationId: 'of-others' })
  for (const id of ['run-1.a', 'run-9.a', 'run-1.b', 'a', '', '.', 'run-1.'])
    expect(results.find('conversation-1', id)).toMatchObject({
      ok: false,
      message: expect.stringContaining(`no result ${JSON.stringify(id)}`),
    })
  expect(results.find('of-others', 'run-1.a')).toEqual({ ok: true, text: 'secret' })
})

test('a whole result that was altered in the database is refused', () => {
  turn(1, 'cut', { whole: 'the whole' })
  keep(1, 'another whole')
  expect(results.find('conversation-1', 'run-1.a')).toMatchObject({ ok: false, message: expect.stringContaining('was altered') })
})

test('a whole result comes back, and without it what the model saw; each run has its own of the same call id', () => {
  const whole = 'the whole ü 😀\n'.repeat(10_000)
  turn(1, 'cut 1', { whole })
  turn(2, 'shown 2')
  keep(1, whole)
  expect(results.find('conversation-1', 'run-1.a')).toEqual({ ok: true, text: whole })
  expect(results.find('conversation-1', 'run-2.a')).toEqual({ ok: true, text: 'shown 2' })
})

test('the list has the calls of this conversation that ran, the newest first', () => {
  turn(1, 'one')
  turn(2, 'two')
  turn(3, 'three', { conversationId: 'of-others' })
  expect(results.list('conversation-1')).toBe('run-2.a file_read {"path":"a.txt"}\nrun-1.a file_read {"path":"a.txt"}')
})

test('the oldest results make room, and a result larger than all the room keeps nothing', () => {
  const random = (seed: number) => Array.from({ length: 2_000 }, (_, at) => sha256(`${seed} ${at}`)).join('')
  for (const number of [1, 2, 3, 4]) {
    turn(number, `shown ${number}`)
    keep(number, random(number), 140_000)
  }
  expect(results.use().count).toBe(2)
  expect(results.use().bytes).toBeLessThanOrEqual(140_000)
  expect(results.find('conversation-1', 'run-1.a')).toEqual({ ok: true, text: 'shown 1' })
  expect(results.find('conversation-1', 'run-4.a')).toEqual({ ok: true, text: random(4) })
  keep(1, random(1), 0)
  expect(results.use()).toEqual({ count: 0, bytes: 0 })
})

test('a deleted conversation leaves none of its results', () => {
  turn(1, 'cut', { whole: 'confidential' })
  keep(1, 'confidential')
  deleteConversation(stage.memory.store, 'conversation-1', () => stage.memory.note('conversation.deleted', {}))
  expect(results.use().count).toBe(0)
  using database = new Database(stage.path, { readonly: true })
  expect(database.query('SELECT count(*) AS n FROM results').get()).toEqual({ n: 0 })
})

test('a later turn sees a trimmed turn as its model saw it last', () => {
  const [run, { external, intent, finished }] = [runOf(1), recorder()]
  external(run, started('the task'))
  for (const id of ['a', 'b', 'c']) {
    if (id === 'c') {
      const trim: Trim = {
        window: 4_000,
        before: 3_000,
        after: 1_000,
        lines: ['b'],
        summary: { from: 1, until: 3, text: 'a was read', by: 'model' },
        omitted: 0,
        readable: true,
        digest: messagesDigest([]),
      }
      external(run, { type: 'context.trimmed', ...trim })
    }
    external(run, replied([{ type: 'call', ...callOf(id) }]))
    intent(run, acting(callOf(id)))
    external(run, { type: 'tool.done', id, outcome: { status: 'allowed', output: `output of ${id} ${'x'.repeat(200)}` } })
  }
  finished(run, finish, '')
  const { messages } = stage.memory.context('conversation-1', 10_000)
  expect(
    messages.map((message) =>
      message.role === 'assistant' ? message.parts.map((part) => part.type === 'call' && part.id) : message.content,
    ),
  ).toEqual([
    'the task',
    expect.stringContaining('a was read'),
    ['b'],
    expect.stringContaining('[result of file_read {"path":"a.txt"}, 212 bytes, left out'),
    ['c'],
    expect.stringContaining('output of c'),
  ])
})

test('a picture is kept once for a conversation, found only there and unaltered, and goes with the conversation', () => {
  turn(1, 'seen')
  const picture = { type: 'image/png', base64: Buffer.from('not really a picture').toString('base64') } as const
  const kept = [1, 2].map(() => results.keepPicture('conversation-1', picture, stage.clock.now++, 1_000_000))
  expect(kept[0]).toEqual({ type: 'image/png', sha256: sha256('not really a picture') })
  expect(results.use().count).toBe(1)
  const [ref = { type: 'image/png', sha256: '' }] = kept
  expect(results.picture('conversation-2', ref)).toBeUndefined()
  expect(results.picture('conversation-1', ref)).toEqual(picture)
  expect(results.find('conversation-1', `conversation-1.${ref.sha256}`).ok).toBe(false)
  stage.memory.store.sql<never, [Uint8Array]>('UPDATE results SET packed = ?').run(Bun.zstdCompressSync('AAAA'))
  expect(results.picture('conversation-1', ref)).toBeUndefined()
  deleteConversation(stage.memory.store, 'conversation-1', () => stage.memory.note('conversation.deleted', {}))
  expect(results.use().count).toBe(0)
})

test('a copy takes the named pictures that its conversation still has, within what the home keeps', () => {
  const keptIn = (conversation: string, text: string) => {
    const base64 = Buffer.from(text).toString('base64')
    return results.keepPicture(conversation, { type: 'image/png', base64 }, stage.clock.now++, 1_000_000)
  }
  const [one, two, foreign] = [keptIn('conversation-1', 'one'), keptIn('conversation-1', 'two'), keptIn('of-others', 'three')]
  const copied = (to: string) => [one, two, foreign].map((ref) => results.picture(to, ref) !== undefined)
  const digests = [one.sha256, foreign.sha256, sha256('never kept')]
  results.copyPictures({ from: 'conversation-1', to: 'copy', digests }, stage.clock.now++, 1_000_000)
  expect(copied('copy')).toEqual([true, false, false])
  const size = results.use().bytes / results.use().count
  results.copyPictures({ from: 'conversation-1', to: 'other', digests: [two.sha256] }, stage.clock.now++, 2 * size + 4)
  expect([results.use().count, copied('copy'), copied('other')]).toEqual([2, [true, false, false], [false, true, false]])
})
