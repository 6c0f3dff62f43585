import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { ExternalEvent, Part } from '../../runtime/event.ts'
import type { Message } from '../../runtime/port.ts'
import { acting, callOf, createMemoryStage, finish, type MemoryStage, recordSteps, refusing, replied, runOf, started } from '../fixture.ts'
import { createJournal } from '../journal/journal.ts'
import { openStore, type Store } from '../store.ts'
import { addTurn } from './conversations.ts'
import { createContext, estimateTokens } from './model-context.ts'

let memoryStage: MemoryStage
beforeEach(() => {
  memoryStage = createMemoryStage()
})
afterEach(() => memoryStage.remove())

const recorder = () =>
  recordSteps({ memory: memoryStage.memory, log: () => {}, now: () => memoryStage.clock.now++, redact: (event) => event })

const startedWith = (prompt: string) => started(prompt) as Extract<ExternalEvent, { type: 'run.start' }>

function chat(number: number, question: string, answer: string): void {
  const { external, finished } = recorder()
  external(runOf(number), started(question))
  external(runOf(number), replied([{ type: 'text', text: answer }]))
  finished(runOf(number), finish, '')
}

test('older turns that do not fit are left out whole, and counted', () => {
  for (let number = 1; number <= 4; number += 1)
    chat(number, `question ${number} ${'ask '.repeat(100)}`, `answer ${number} ${'say '.repeat(100)}`)
  const all = memoryStage.memory.context('conversation-1', 10_000)
  expect(all).toMatchObject({ omittedTurns: 0 })
  expect(all.messages).toHaveLength(8)
  const some = memoryStage.memory.context('conversation-1', 550)
  expect(some.omittedTurns).toBe(2)
  expect(some.messages).toEqual(all.messages.slice(4))
  expect(some.estimatedTokens).toBe(estimateTokens(some.messages))
  expect(memoryStage.memory.context('conversation-1', 10)).toEqual({ messages: [], omittedTurns: 4, estimatedTokens: 0 })
})

test('a turn that is too big also hides the smaller ones before it: no holes', () => {
  chat(1, 'small', 'small')
  chat(2, 'big', 'x'.repeat(10_000))
  chat(3, 'small', 'small')
  const { messages, omittedTurns } = memoryStage.memory.context('conversation-1', 1000)
  expect([messages.length, omittedTurns]).toEqual([2, 2])
})

/** Run 1 made two calls and died in the second; run 2 goes on. */
function interrupted() {
  const [first, { external, intent }] = [runOf(1), recorder()]
  const calls = ['a', 'b'].map((id) => callOf(id))
  external(first, started('go'))
  external(first, replied(calls.map((call) => ({ type: 'call' as const, ...call }))))
  for (const call of calls) {
    intent(first, acting(call))
    external(first, { type: 'tool.done', id: call.id, outcome: { status: 'allowed', output: `${call.id} of the first run` } })
  }
  return { external, intent, b: callOf('b') }
}

const shown = (open?: ReadonlySet<string>, budget = 10_000) => {
  const { messages, omittedTurns } = memoryStage.memory.context('conversation-1', budget, open)
  return [omittedTurns, ...messages.map((message) => (message.role === 'assistant' ? 'reply' : message.content))]
}

test('a turn that goes on ends as it stood, without results of the calls that are made now, and however long it is', () => {
  chat(0, 'earlier', 'answer')
  interrupted()
  expect(shown(new Set(['b']))).toEqual([0, 'earlier', 'reply', 'go', 'reply', 'a of the first run'])
  expect(shown(new Set(['b']), 1)).toEqual([1, 'go', 'reply', 'a of the first run'])
})

test('a run that went on belongs to the turn of the first: the last result of a call counts, and its note stands behind the results', () => {
  const { external, intent, b } = interrupted()
  const continues = { run: 'run-1', asked: 'go', proposals: [{ call: b, judgement: acting(b).judgement }] }
  memoryStage.memory.journal.end('run-1', { at: 1, code: 'error', message: 'died', digest: null })
  external(runOf(2), { ...startedWith('look first'), continues })
  expect(shown(new Set(['b']))).toEqual([0, 'go', 'reply', 'a of the first run'])
  intent(runOf(2), acting(b))
  external(runOf(2), { type: 'tool.done', id: 'b', outcome: { status: 'allowed', output: 'b of the second run' } })
  external(runOf(2), replied([{ type: 'text', text: 'done' }]))
  expect(shown()).toEqual([0, 'go', 'reply', 'a of the first run', 'b of the second run', 'look first', 'reply'])
  const [line] = memoryStage.memory.conversations.list()
  expect([line?.turns, line?.title]).toEqual([1, 'go'])
})

test('a note that no reply followed is told once, by the run that goes on next', () => {
  const { external } = interrupted()
  const continuing = (run: string) => ({ ...startedWith('look first'), continues: { run, asked: 'go', proposals: [] } })
  const died = (run: string) => memoryStage.memory.journal.end(run, { at: 1, code: 'error', message: 'died', digest: null })
  died('run-1')
  external(runOf(2), continuing('run-1'))
  died('run-2')
  expect(shown(new Set())).toEqual([0, 'go', 'reply', 'a of the first run', 'b of the first run'])
  external(runOf(3), continuing('run-2'))
  external(runOf(3), replied([{ type: 'text', text: 'done' }]))
  expect(shown()).toEqual([0, 'go', 'reply', 'a of the first run', 'b of the first run', 'look first', 'reply'])
})

test('of two runs that go on with one turn the second is not recorded, and neither is one after a later turn', () => {
  const { external } = interrupted()
  const continues = { run: 'run-1', asked: 'go', proposals: [] }
  expect(() => external(runOf(2), { ...startedWith(''), continues })).toThrow('nothing was done')
  memoryStage.memory.journal.end('run-1', { at: 1, code: 'error', message: 'died', digest: null })
  external(runOf(2), { ...startedWith(''), continues })
  expect(() => external(runOf(3), { ...startedWith(''), continues })).toThrow('a later turn of this conversation began after run-1')
  expect(memoryStage.memory.journal.run('run-3')).toBeUndefined()
})

test('an unknown conversation is an empty one', () => {
  expect(memoryStage.memory.context('none', 1000)).toEqual({ messages: [], omittedTurns: 0, estimatedTokens: 0 })
})

test('every call is followed by its results, in the order of the calls, refused and lost ones too', () => {
  const [run, { external, intent, denied }] = [runOf(1), recorder()]
  const calls = ['a', 'b', 'c', 'd'].map((id) => callOf(id))
  external(run, started('go'))
  external(run, replied(calls.map((call) => ({ type: 'call' as const, ...call }))))
  denied(run, refusing(callOf('c')))
  intent(run, acting(callOf('a')))
  intent(run, acting(callOf('b')))
  external(run, { type: 'tool.done', id: 'b', outcome: { status: 'failed', output: '', error: 'broken' } })
  external(run, { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'fine' } })
  expect(memoryStage.memory.context('conversation-1', 1000).messages.slice(2)).toEqual([
    { role: 'tool', callId: 'a', name: 'file_read', content: 'fine', isError: false },
    { role: 'tool', callId: 'b', name: 'file_read', content: 'Failed: broken', isError: true },
    { role: 'tool', callId: 'c', name: 'file_read', content: 'Denied by safety: outside the workspace', isError: true },
    { role: 'tool', callId: 'd', name: 'file_read', content: 'No result: the run ended before this call was carried out.', isError: true },
  ])
})

test('the same call id in a later round gets its own result', () => {
  const [run, { external, intent }] = [runOf(1), recorder()]
  external(run, started('go'))
  for (const output of ['first', 'second']) {
    external(run, replied([{ type: 'call', ...callOf('call_1') }]))
    intent(run, acting(callOf('call_1')))
    external(run, { type: 'tool.done', id: 'call_1', outcome: { status: 'allowed', output } })
  }
  const tools = memoryStage.memory.context('conversation-1', 1000).messages.filter(({ role }) => role === 'tool')
  expect(tools).toMatchObject([{ content: 'first' }, { content: 'second' }])
})

test('two processes in one conversation do not mix their turns', () => {
  const { external } = recorder()
  external(runOf(1), started('one'))
  external(runOf(2), started('two'))
  external(runOf(1), replied([{ type: 'text', text: 'answer one' }]))
  external(runOf(2), replied([{ type: 'text', text: 'answer two' }]))
  const said = memoryStage.memory
    .context('conversation-1', 1000)
    .messages.map((message) => (message.role === 'user' ? message.content : message.role))
  expect(said).toEqual(['one', 'assistant', 'two', 'assistant'])
})

test('parts come back as they went in: order, thinking, signatures, malformed arguments', () => {
  const meta = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((value) => JSON.parse(JSON.stringify(value)))
  const part: fc.Arbitrary<Part> = fc.oneof(
    fc.record({ type: fc.constant('text' as const), text: fc.string({ unit: 'binary' }), meta }, { requiredKeys: ['type', 'text'] }),
    fc.record({ type: fc.constant('thinking' as const), text: fc.string({ unit: 'binary' }), meta }, { requiredKeys: ['type', 'text'] }),
    fc.record(
      { type: fc.constant('call' as const), id: fc.string(), name: fc.string(), input: meta, malformed: fc.string(), meta },
      { requiredKeys: ['type', 'id', 'name', 'input'] },
    ),
  )
  let number = 0
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
      number += 1
      const run = runOf(number, { conversationId: `conversation-p${number}` })
      recorder().external(run, replied(parts))
      const [first]: Message[] = memoryStage.memory.context(run.conversationId, 1_000_000).messages
      expect(first).toEqual({ role: 'assistant', parts: JSON.parse(JSON.stringify(parts)) })
    }),
    { numRuns: 60 },
  )
})

test('the estimate counts every script, inputs and meta', () => {
  expect(estimateTokens([{ role: 'user', content: 'abcd' }])).toBe(1)
  expect(estimateTokens([{ role: 'user', content: '東京' }])).toBe(3)
  const parts: Part[] = [{ type: 'call', ...callOf('a', { text: 'x'.repeat(4000) }), meta: { signature: 's'.repeat(4000) } }]
  expect(estimateTokens([{ role: 'assistant', parts }])).toBeGreaterThan(2000)
})

let folder = ''
let store: Store
const asked: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-told-'))
  const opened = openStore({ path: join(folder, 'memory.sqlite'), log: () => {} })
  if (!opened.ok) throw new Error(opened.failure.message)
  const sql: Store['sql'] = (text: string) => {
    asked.push(text)
    return opened.store.sql(text)
  }
  store = { ...opened.store, sql }
})
afterEach(() => {
  store.close()
  rmSync(folder, { recursive: true, force: true })
})

function talk(runId: string, ends = true): void {
  const journal = createJournal(store, (turn, at) => addTurn(store, turn, at))
  const run = { runId, conversationId: 'c', turnId: runId, provider: 'p', model: 'm', channel: 'cli' }
  journal.append({ run, kind: 'external', type: 'run.start', at: 1, body: { type: 'run.start', prompt: `ask ${runId}` } })
  journal.append({ run, kind: 'external', type: 'model.done', at: 2, body: { parts: [{ type: 'text', text: `say ${runId}` }] } })
  if (ends) journal.end(runId, { at: 3, code: 'answered', message: '', digest: null })
}

/** Returns how many runs are read while `look` runs. */
function readsOf(look: () => void): number {
  asked.length = 0
  look()
  return asked.filter((text) => /^SELECT seq, role, content/.test(text)).length
}

test('a run that is over is read once; one that goes on, each time', () => {
  for (const runId of ['a', 'b']) talk(runId)
  talk('open', false)
  const context = createContext(store, () => 1)
  const look = () => void context('c', 10_000)
  expect([readsOf(look), readsOf(look)]).toEqual([3, 1])
  talk('d')
  expect([readsOf(look), readsOf(look)]).toEqual([2, 1])
  expect(JSON.stringify(context('c', 10_000))).toBe(JSON.stringify(createContext(store, () => 1)('c', 10_000)))
})

test('what another connection writes is seen by the next look', () => {
  talk('a')
  const context = createContext(store, () => 1)
  expect(JSON.stringify(context('c', 10_000))).toContain('ask a')
  using other = new Database(join(folder, 'memory.sqlite'))
  other.run(`UPDATE turns SET content = 'altered' WHERE role = 'user'`)
  expect(JSON.stringify(context('c', 10_000))).toContain('altered')
})

test('no more is kept than the newest million tokens', () => {
  const context = createContext(store, () => 1)
  const long = 'x'.repeat(1_000_000)
  for (const runId of ['a', 'b', 'c', 'd', 'e', 'f']) talk(`${runId}${long}`)
  const look = () => void context('c', 100_000_000)
  expect(readsOf(look)).toBe(6)
  expect(readsOf(look)).toBeGreaterThan(0)
})

test('a later turn names the pictures of a question and of a result, and counts their tokens', () => {
  const { external, intent, finished } = recorder()
  const [asked, read] = [{ type: 'image/png', sha256: 'a'.repeat(64) } as const, { type: 'image/gif', sha256: 'b'.repeat(64) } as const]
  external(runOf(1), { ...startedWith('look'), pictures: [asked] })
  external(runOf(1), replied([{ type: 'call', ...callOf('a') }]))
  intent(runOf(1), acting(callOf('a')))
  external(runOf(1), { type: 'tool.done', id: 'a', outcome: { status: 'allowed', output: 'a picture', pictures: [read] } })
  external(runOf(1), replied([{ type: 'text', text: 'done' }]))
  finished(runOf(1), finish, '')
  const { messages, estimatedTokens } = memoryStage.memory.context('conversation-1', 10_000)
  expect(messages.flatMap((message) => ('pictures' in message ? [[message.role, message.pictures]] : []))).toEqual([
    ['user', [asked]],
    ['tool', [read]],
  ])
  expect(estimatedTokens).toBeGreaterThan(4_000)
  expect(memoryStage.memory.context('conversation-1', 4_000).omittedTurns).toBe(1)
})

test('what a person said during a turn stands where the request had it; without a reply after it, it is not part of the turn', () => {
  const [run, { external, intent, finished }] = [runOf(1), recorder()]
  const calls = ['a', 'b'].map((id) => callOf(id))
  external(run, started('go'))
  external(run, replied(calls.map((call) => ({ type: 'call' as const, ...call }))))
  external(run, { type: 'steer', text: 'first' })
  for (const call of calls) {
    intent(run, acting(call))
    external(run, { type: 'tool.done', id: call.id, outcome: { status: 'allowed', output: call.id } })
    if (call.id === 'a') external(run, { type: 'steer', text: 'second' })
  }
  external(run, replied([{ type: 'call', ...callOf('c') }]))
  external(run, { type: 'steer', text: 'unheard' })
  finished(run, finish, '')
  expect(shown().slice(1, 8)).toEqual(['go', 'reply', 'a', 'b', 'first', 'second', 'reply'])
  expect(shown()).not.toContain('unheard')
})
