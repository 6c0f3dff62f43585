import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { ExternalEvent } from '../../runtime/event.ts'
import {
  acting,
  callOf,
  createMemoryStage,
  finish,
  judgement,
  type MemoryStage,
  recordSteps,
  refusing,
  replied,
  runOf,
  searchIn,
  started,
} from '../fixture.ts'
import { projectTurns } from '../journal/turns.ts'
import { clearConversations } from './delete-conversations.ts'

let memoryStage: MemoryStage
beforeEach(() => {
  memoryStage = createMemoryStage()
})
afterEach(() => memoryStage.remove())

const recorder = () =>
  recordSteps({ memory: memoryStage.memory, log: () => {}, now: () => memoryStage.clock.now++, redact: (event) => event })

/** A question, a call that succeeds, one that fails, one that is refused, an answer. */
function converse(number: number, prompt = 'What is in a.txt?'): void {
  const [run, { external, intent, denied, finished }] = [runOf(number), recorder()]
  const calls = ['a', 'b', 'c'].map((id) => callOf(id, { path: `${id}.txt` }))
  external(run, started(prompt))
  external(
    run,
    replied([
      { type: 'thinking', text: 'hm', meta: { signature: 'sig' } },
      { type: 'text', text: 'Let me look.' },
      ...calls.map((call) => ({ type: 'call' as const, ...call })),
    ]),
  )
  for (const call of calls.slice(0, 2)) intent(run, acting(call))
  external(run, { type: 'tool.done', id: 'b', outcome: { status: 'failed', output: 'half of it', error: 'no such file' } })
  external(run, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'Aardvark adapter', metadata: { bytes: 16 } } })
  denied(run, refusing(callOf('c', { path: 'c.txt' })))
  external(
    run,
    replied([
      { type: 'text', text: 'An aardvark ' },
      { type: 'text', text: 'adapter.' },
    ]),
  )
  finished(run, finish, 'digest')
}

test('clear without a yes deletes nothing', () => {
  converse(1)
  expect(clearConversations(memoryStage.memory, { yes: false })).toMatchObject({ ok: false })
  expect(memoryStage.memory.conversations.list()).toHaveLength(1)
})

test('clear leaves no trace of what was said in any file, but receipts and live work stay', () => {
  converse(1, 'the secret word is xylophonist')
  const { memory } = memoryStage
  memory.checkpoint.put({ logId: 'l', count: 3, head: 'h', mac: 'm', size: 9 })
  const { external, intent } = recorder()
  const live = runOf(2, { conversationId: 'conversation-2' })
  external(live, started('under way'))
  intent(live, acting(callOf('a')))
  expect(searchIn(memoryStage)({ query: 'xylophonist' })).toHaveLength(1)
  expect(clearConversations(memory, { yes: true })).toEqual({ ok: true, conversations: 1, turns: 6, underWay: 1, shrunk: true })
  const home = join(memoryStage.folder, 'home')
  for (const file of readdirSync(home)) expect(readFileSync(join(home, file)).includes('xylophonist'), file).toBe(false)
  expect(memory.conversations.list().map(({ conversationId }) => conversationId)).toEqual(['conversation-2'])
  expect([memory.conversations.has('conversation-1'), memory.conversations.has('conversation-2')]).toEqual([false, true])
  expect(memory.conversations.show('conversation-1')).toEqual([])
  expect(searchIn(memoryStage)({ query: 'xylophonist' })).toEqual([])
  expect(memory.journal.runs({ limit: 9 }).map(({ runId }) => runId)).toEqual(['run-2'])
  expect(memory.journal.openIntent('run-2', 'a')).toMatchObject({ tool: 'file_read' })
  expect(memory.checkpoint.get()).toMatchObject({ count: 3 })
  converse(3)
  expect(searchIn(memoryStage)({ query: 'aardvark' })).not.toHaveLength(0)
})

test('a run that is under way while all is cleared stays whole, and no number is used again meanwhile', async () => {
  converse(1)
  const { memory } = memoryStage
  const { external, intent, finished } = recorder()
  const live = runOf(2)
  external(live, started('under way'))
  intent(live, acting(callOf('a')))
  const before = memory.journal.events('run-2')
  clearConversations(memory, { yes: true })
  external(live, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'found' } })
  finished(live, finish, 'digest')
  expect(memory.journal.events('run-2').slice(0, 2)).toEqual(before)
  expect(memory.journal.events('run-2').map(({ type }) => type)).toEqual(['run.start', 'act', 'tool.done', 'finish'])
  expect(memory.journal.alteredIn('run-2')).toBeUndefined()
  expect(memory.conversations.list()).toMatchObject([{ turns: 1, title: 'under way' }])
  expect(searchIn(memoryStage)({ query: 'under way' })).toHaveLength(1)
  expect((await memory.projections()).check()).toMatchObject({ equal: true, turns: 2 })
  expect(clearConversations(memory, { yes: true })).toMatchObject({ conversations: 1, turns: 2, underWay: 0 })
  expect(memory.journal.runs({ limit: 9 })).toEqual([])
})

test('clear takes every question but those of what is under way, the answered ones of which are still to be used', () => {
  const { approvals } = memoryStage.memory
  const { external, finished } = recorder()
  const gate = (id: string) => ({ type: 'gate.open' as const, id, call: callOf(id), judgement })
  const ask = (number: number, id: string) => {
    external(runOf(number), started('may I?'))
    return approvals.create({ run: runOf(number), gate: gate(id), expires: memoryStage.clock.now + 60_000 })
  }
  const [over, open, allowed] = [ask(1, 'a'), ask(2, 'a'), ask(2, 'b')]
  finished(runOf(1), finish, 'digest')
  approvals.decide({ id: allowed, allow: true, by: 'operator' })
  clearConversations(memoryStage.memory, { yes: true })
  expect([over, open, allowed].map((id) => approvals.get(id)?.state)).toEqual([undefined, 'open', 'allowed'])
  expect(approvals.consume({ id: allowed, plan: judgement.plan })).toEqual({ ok: true })
})

test('what is deleted is overwritten even while the file cannot be rewritten', () => {
  converse(1, 'the secret word is xylophonist')
  const { memory } = memoryStage
  const reading = memory.conversations.exportJsonl()
  reading.next()
  expect(clearConversations(memory, { yes: true })).toMatchObject({ ok: true, shrunk: false })
  reading.return(undefined)
  memory.close()
  const home = join(memoryStage.folder, 'home')
  for (const file of readdirSync(home)) expect(readFileSync(join(home, file)).includes('xylophonist'), file).toBe(false)
})

test('clear gives the space back', () => {
  const { external, finished } = recorder()
  external(runOf(1), started('x'.repeat(2_000_000)))
  finished(runOf(1), finish, 'digest')
  clearConversations(memoryStage.memory, { yes: true })
  expect(statSync(memoryStage.path).size).toBeLessThan(300_000)
})

test('clear keeps what an ended run still owes', () => {
  const { intent, finished } = recorder()
  intent(runOf(1), acting(callOf('a')))
  finished(runOf(1), finish, '')
  clearConversations(memoryStage.memory, { yes: true })
  expect(memoryStage.memory.journal.unfinished()).toMatchObject([{ runId: 'run-1', intents: [{ callId: 'a' }] }])
})

test('a turn row has every field that was asked for', () => {
  converse(1)
  const [user, assistant, failed, allowed, denied, answer, ...rest] = memoryStage.memory.conversations.show('conversation-1')
  const about = { conversation_id: 'conversation-1', turn_id: 'turn-1', provider: 'mock', tool_calls: null, tool_results: null }
  expect(user).toEqual({
    ...about,
    timestamp: '2026-05-12T12:00:00.000Z',
    role: 'user',
    content: 'What is in a.txt?',
    model: 'mock-1',
    metadata: { run_id: 'run-1', channel: 'cli', mode: 'structured' },
  })
  expect(assistant).toMatchObject({
    role: 'assistant',
    content: 'Let me look.',
    model: 'mock-2',
    tool_calls: [
      { id: 'a', name: 'file_read', input: { path: 'a.txt' } },
      { id: 'b', name: 'file_read', input: { path: 'b.txt' } },
      { id: 'c', name: 'file_read', input: { path: 'c.txt' } },
    ],
    metadata: { usage: { inputTokens: 3, outputTokens: 5 } },
  })
  expect(failed).toMatchObject({
    role: 'tool',
    content: 'Failed: no such file\nhalf of it',
    tool_results: [{ call_id: 'b', name: 'file_read', status: 'failed', error: 'no such file' }],
  })
  expect(allowed).toMatchObject({
    role: 'tool',
    content: 'Aardvark adapter',
    tool_results: [{ call_id: 'a', name: 'file_read', status: 'allowed' }],
    metadata: { metadata: { bytes: 16 } },
  })
  expect(denied).toMatchObject({
    role: 'tool',
    content: 'Denied by safety: outside the workspace',
    tool_results: [{ call_id: 'c', status: 'denied' }],
  })
  expect(answer).toMatchObject({ role: 'assistant', content: 'An aardvark adapter.', tool_calls: null })
  expect(rest).toEqual([])
})

test('the stored rows are what the journal projects to', () => {
  converse(1)
  const { journal, conversations } = memoryStage.memory
  const [run] = journal.runs({ limit: 1 })
  expect(run && projectTurns(run, journal.events('run-1'))).toEqual(conversations.show('conversation-1'))
})

test('a body of any shape is journalled as it is and never breaks the projection', () => {
  const { journal } = memoryStage.memory
  const types = fc.constantFrom('run.start', 'model.done', 'tool.done', 'deny')
  const kinds = fc.constantFrom('external' as const, 'intent' as const, 'note' as const)
  fc.assert(
    fc.property(fc.jsonValue(), types, kinds, (body, type, kind) => {
      const seq = journal.append({ run: runOf(1), kind, type, at: 1, body })
      expect(journal.events('run-1').at(-1)).toEqual({ seq, kind, type, at: 1, body: JSON.parse(JSON.stringify(body)) })
    }),
    { numRuns: 60 },
  )
})

test('lone surrogates, NUL and ten megabytes go in and come out', () => {
  const prompt = `\ud800 \0 é 東京 ${'lorem ipsum '.repeat(900_000)}`
  const { external } = recorder()
  external(runOf(1), started(prompt))
  expect(memoryStage.memory.journal.events('run-1')[0]?.body).toMatchObject({ prompt })
  expect(memoryStage.memory.conversations.show('conversation-1')[0]?.content.length).toBe(prompt.length)
})

test('conversations are listed newest first, with their first question', () => {
  const { external } = recorder()
  external(runOf(1), started(`  first\n question ${'x'.repeat(200)}`))
  memoryStage.clock.now += 60_000
  external(runOf(2, { conversationId: 'conversation-2' }), started('second'))
  external(runOf(3, { conversationId: 'conversation-2' }), started('third'))
  const [newest, oldest] = memoryStage.memory.conversations.list()
  expect(newest).toMatchObject({ conversationId: 'conversation-2', turns: 2, title: 'second' })
  expect(oldest?.title).toStartWith('first question xxx')
  expect(oldest?.title).toHaveLength(80)
  expect(memoryStage.memory.conversations.list({ limit: 1, offset: 1 })).toEqual([oldest].flatMap((one) => one ?? []))
})

test('the export is one JSON line a row, of one conversation or of all', () => {
  converse(1)
  recorder().external(runOf(9, { conversationId: 'other' }), started('elsewhere'))
  const { conversations } = memoryStage.memory
  const lines = [...conversations.exportJsonl('conversation-1')]
  expect(lines.every((line) => line.endsWith('\n') && line.indexOf('\n') === line.length - 1)).toBe(true)
  expect(lines.map((line) => JSON.parse(line))).toEqual(conversations.show('conversation-1'))
  expect([...conversations.exportJsonl()]).toHaveLength(lines.length + 1)
  expect([...conversations.exportJsonl('none')]).toEqual([])
})

test('runs are listed newest first, of all or of one conversation, with how they ended', () => {
  converse(1)
  const still: ExternalEvent = started('still running')
  recorder().external(runOf(2, { conversationId: 'other' }), still)
  const { journal } = memoryStage.memory
  expect(journal.runs({ limit: 9 }).map(({ runId, code, digest }) => [runId, code, digest])).toEqual([
    ['run-2', null, null],
    ['run-1', 'answered', 'digest'],
  ])
  expect(journal.runs({ limit: 9, conversation: 'conversation-1' })).toHaveLength(1)
  expect(journal.runs({ limit: 1 })).toHaveLength(1)
  expect(journal.unfinished().map(({ runId, intents }) => [runId, intents])).toEqual([['run-2', []]])
  expect(journal.run('run-1')).toMatchObject({ conversationId: 'conversation-1', channel: 'cli', code: 'answered', message: 'done' })
})
