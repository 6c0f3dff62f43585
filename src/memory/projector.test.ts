/** The files of an agent after crashes: every line that was committed stands there once, whatever had been written of it. */

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordEntry, RunIdentity } from '../runtime/port.ts'
import { fileNames } from './agent-files/agent-paths.ts'
import { callOf, createDesk, type Desk, finish, judgement, replied, runOf, started } from './fixture.ts'
import { createRecordWriter } from './record-writer.ts'
import { createRecorder } from './recorder.ts'

let desk: Desk
let folder = ''
let said: string[] = []
beforeEach(() => {
  said = []
  desk = createDesk(undefined, log)
  folder = join(desk.folder, 'home', 'agents', 'default')
})
afterEach(() => desk.remove())

function log(level: string, event: string): void {
  said.push(`${level} ${event}`)
}
const identity = (number: number): RunIdentity =>
  runOf(number, { conversationId: 'conversation_1', agent: { id: 'default', folder, pointer: 'conversation', remembers: true } })
const redact = <T>(value: T): T =>
  JSON.stringify(value).includes('hunter2') ? JSON.parse(JSON.stringify(value).replaceAll('hunter2', '[secret]')) : value

function writer() {
  return createRecordWriter({ memory: desk.memory, log, now: () => desk.clock.now++, redact })
}

const batches = (number: number): readonly (readonly RecordEntry[])[] => [
  [{ kind: 'external', event: started(`question ${number}`) }],
  [
    {
      kind: 'external',
      event: replied([
        { type: 'text', text: 'let me see' },
        { type: 'call', ...callOf('a') },
      ]),
    },
    { kind: 'denied', deny: { type: 'deny', id: 'a', call: callOf('a'), judgement, by: 'safety', reason: 'outside' } },
  ],
  [
    { kind: 'external', event: replied([{ type: 'text', text: `answer ${number}` }]) },
    { kind: 'finish', finish, digest: 'digest' },
  ],
]

/** One whole run through the real recorder. */
async function turn(number: number): Promise<void> {
  const recorder = createRecorder(writer(), desk.memory.lockWait)
  for (const batch of batches(number)) await recorder.commit(identity(number), batch)
}

/** A run whose process died after `commits` commits and wrote nothing of the last `unwritten`. */
function crash(number: number, { commits, unwritten }: { readonly commits: number; readonly unwritten: number }): void {
  const { write, follow, abandon } = writer()
  for (const [at, batch] of batches(number).slice(0, commits).entries()) {
    write(identity(number), batch)
    if (at < commits - unwritten) follow(identity(number))
  }
  abandon(identity(number))
  using db = new Database(desk.path)
  db.run(`UPDATE runs SET owner = '1@1-gone' WHERE run_id = ?`, [identity(number).runId])
}

const path = (file: keyof typeof fileNames) => join(folder, fileNames[file])
const text = (file: keyof typeof fileNames) => (existsSync(path(file)) ? readFileSync(path(file), 'utf8') : '')
function contents(file: 'session' | 'history'): readonly string[] {
  return text(file)
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line).content]
      } catch {
        return []
      }
    })
}

const events = (): readonly string[] =>
  text('trace')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(({ event, message }) => `${event}: ${message}`)

const told = (number: number) => [
  `user_input: question ${number}`,
  'tool_call: file_read {"path":"a.txt"}',
  'denied: file_read: Denied by safety: outside',
  `llm_response: answer ${number}`,
]

const files = async () => (await desk.memory.projections()).files

describe('after a crash', () => {
  test.each([
    [3, 1],
    [3, 2],
    [3, 3],
  ])('%i commits of which %i were not written: each line stands once, from the next turn on', async (commits, unwritten) => {
    await turn(1)
    crash(2, { commits, unwritten })
    expect(events().length).toBe(4 + told(2).length - ([0, 1, 3, 4][unwritten] ?? 0))
    await turn(3)
    await turn(4)
    expect(events().toSorted()).toEqual([1, 2, 3, 4].flatMap(told).toSorted())
    expect(contents('session')).toEqual([1, 2, 3, 4].flatMap((n) => [`question ${n}`, `answer ${n}`]))
    expect(contents('history')).toEqual(contents('session'))
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test.each([1, 30, 66])(
    'a line of which only %i bytes were written is written whole; the torn part stays, and is no message',
    async (count) => {
      await turn(1)
      crash(2, { commits: 3, unwritten: 1 })
      const line = JSON.stringify({ ts: '2026-05-12T12:00:00Z', role: 'user', content: 'question 2' })
      appendFileSync(path('session'), line.slice(0, count))
      await turn(3)
      await turn(4)
      expect(contents('session')).toEqual([1, 2, 3, 4].flatMap((n) => [`question ${n}`, `answer ${n}`]))
      expect(text('session').split('\n')).toContain(line.slice(0, count))
      expect(desk.memory.conversations.show('conversation_1').filter(({ content }) => content === 'question 2')).toHaveLength(1)
      expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
    },
  )

  test('a run that never ended is told up to where it came once it is closed', async () => {
    crash(1, { commits: 2, unwritten: 2 })
    writer().recover()
    await turn(2)
    expect(events()).toEqual([...told(1).slice(0, 3), ...told(2)])
    expect(contents('session')).toEqual(['question 1', 'question 2', 'answer 2'])
    expect(contents('history')).toEqual(['question 2', 'answer 2'])
  })

  test('a run of a process that is alive is left to it', async () => {
    const { write } = writer()
    for (const batch of batches(1)) write(identity(1), batch)
    const child = Bun.spawn(['sleep', '60'])
    const { ownerOf } = await import('./journal/process-owner.ts')
    using db = new Database(desk.path)
    db.run('UPDATE runs SET owner = ? WHERE run_id = ?', [ownerOf(child.pid), identity(1).runId])
    await turn(2)
    expect(events()).toEqual(told(2))
    child.kill()
    await child.exited
    await turn(3)
    expect(events().toSorted()).toEqual([1, 2, 3].flatMap(told).toSorted())
  })
})

describe('lines of other programs', () => {
  const found = (query: string) => desk.memory.search({ query }).map(({ snippet }) => snippet)

  test('are journalled with file, line and digest before the next question, and found by search', async () => {
    await turn(1)
    appendFileSync(path('session'), '{"ts":"x","role":"assistant","content":"the zebra said so"}\n')
    appendFileSync(path('history'), '{"role":"user","content":"about the okapi"}\n')
    await turn(2)
    const notes = desk.memory.journal.events('run-2').map(({ type, body }) => [type, body])
    expect(notes[0]).toEqual([
      'file.line',
      expect.objectContaining({ file: 'session', line: 3, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }),
    ])
    expect(notes.map(([type]) => type)).toEqual(['file.line', 'file.line', 'run.start', 'model.done', 'deny', 'model.done', 'finish'])
    expect([found('zebra'), found('okapi')]).toEqual([['the zebra said so'], ['about the okapi']])
    const shown = desk.memory.conversations.show('conversation_1')
    expect(shown.find(({ content }) => content.includes('zebra'))).toMatchObject({
      role: 'assistant',
      metadata: { file: 'sessions/current.jsonl', line: 3 },
    })
  })

  test('are no question of the conversation: neither its turns nor its title count them, and the model is not told them', async () => {
    mkdirSync(join(folder, 'sessions'), { recursive: true })
    writeFileSync(path('session'), '{"ts":"x","role":"user","content":"planted before"}\n')
    await turn(1)
    expect(desk.memory.conversations.list()).toMatchObject([{ turns: 1, title: 'question 1' }])
    expect(JSON.stringify(desk.memory.context('conversation_1', 10_000))).not.toContain('planted')
  })

  test('are taken in once, also what is no JSON and what has no end, and never what we wrote ourselves', async () => {
    await turn(1)
    appendFileSync(path('session'), 'plain words of a giraffe\n\n{"role":"user","con')
    await turn(2)
    await turn(3)
    const notes = ['run-2', 'run-3'].map((run) => desk.memory.journal.events(run).filter(({ type }) => type === 'file.line').length)
    expect(notes).toEqual([2, 0])
    expect(found('giraffe')).toHaveLength(1)
    expect(contents('session').length).toBe(6)
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('keep no secret in the journal', async () => {
    await turn(1)
    appendFileSync(path('session'), '{"ts":"x","role":"user","content":"it is hunter2"}\n')
    await turn(2)
    expect(JSON.stringify(desk.memory.journal.events('run-2'))).not.toContain('hunter2')
    expect(found('secret')).toHaveLength(1)
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('a file that was replaced by a shorter one: what is left of ours is no news, what is new is', async () => {
    await turn(1)
    await turn(2)
    const [, , third] = text('session').split('\n')
    writeFileSync(path('session'), `${third}\n{"ts":"x","role":"user","content":"a new okapi"}\n`)
    await turn(3)
    const notes = desk.memory.journal.events('run-3').filter(({ type }) => type === 'file.line')
    expect(notes.map(({ body }) => Object(body).text)).toEqual(['{"ts":"x","role":"user","content":"a new okapi"}'])
    expect(contents('session')).toEqual(['question 2', 'a new okapi', 'question 3', 'answer 3'])
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('a file that was taken away stays away', async () => {
    await turn(1)
    rmSync(path('session'))
    await turn(2)
    expect(contents('session')).toEqual(['question 2', 'answer 2'])
  })

  test('a link in the place of a file is refused, said once, and the turn goes on', async () => {
    await turn(1)
    const outside = join(desk.folder, 'outside.jsonl')
    writeFileSync(outside, 'not ours\n')
    rmSync(path('session'))
    symlinkSync(outside, path('session'))
    await turn(2)
    expect(readFileSync(outside, 'utf8')).toBe('not ours\n')
    expect(said.filter((line) => line.startsWith('warn'))).toEqual(['warn the files of the agent cannot be written'])
    expect(events()).toEqual([...told(1), ...told(2)])
  })
})

describe('rebuild', () => {
  const bytes = () => (['trace', 'session', 'history'] as const).map(text)

  test('makes the same bytes, lines of other programs among them, when all files are gone', async () => {
    await turn(1)
    appendFileSync(path('session'), '{"ts":"x","role":"user","content":"zebra"}\nplain\n')
    appendFileSync(path('trace'), '{"ts":"x","agent":"default","event":"deploy","message":"done"}\n')
    await turn(2)
    const before = [...bytes(), readFileSync(join(folder, 'sessions/conversation'), 'utf8')]
    rmSync(folder, { recursive: true })
    expect((await files()).check().difference).toBeDefined()
    expect((await files()).rebuild().written).toHaveLength(4)
    expect([...bytes(), readFileSync(join(folder, 'sessions/conversation'), 'utf8')]).toEqual(before)
    await turn(3)
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
    expect(contents('history')).toEqual([1, 2, 3].flatMap((n) => [`question ${n}`, `answer ${n}`]))
  })

  test.each([
    ['trace', 'an altered line', (whole: string) => whole.replace('question 1', 'question 9')],
    ['session', 'a line that was taken out', (whole: string) => whole.replace(/.*question 2.*\n/, '')],
    ['history', 'a planted line', (whole: string) => whole.replace('\n', '\n{"role":"user","content":"x"}\n')],
  ] as const)('of %s with %s: named by the check, put right', async (file, _, alter) => {
    await turn(1)
    await turn(2)
    const before = bytes()
    writeFileSync(path(file), alter(text(file)))
    expect((await files()).check().difference).toContain(path(file))
    ;(await files()).rebuild()
    expect(bytes()).toEqual(before)
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('writes what a crash left unwritten, and the next turn does not write it again', async () => {
    await turn(1)
    crash(2, { commits: 3, unwritten: 3 })
    rmSync(path('session'))
    ;(await files()).rebuild()
    await turn(3)
    expect(contents('session')).toEqual([1, 2, 3].flatMap((n) => [`question ${n}`, `answer ${n}`]))
  })

  test('keeps lines that were not taken in yet, for the next turn', async () => {
    await turn(1)
    writeFileSync(path('session'), text('session').replace('answer 1', 'answer 9'))
    appendFileSync(path('session'), 'later words\n')
    ;(await files()).rebuild()
    expect((await files()).check()).toEqual({ files: 3, untaken: 1 })
    await turn(2)
    expect(desk.memory.search({ query: 'later' })).toHaveLength(1)
  })

  test('leaves a session that was reset empty, and its pointer away', async () => {
    await turn(1)
    desk.memory.files.reset({ id: 'default', folder, pointer: 'conversation' }, () => {
      rmSync(path('session'))
      rmSync(join(folder, 'sessions/conversation'))
    })
    expect((await files()).check()).toEqual({ files: 3, untaken: 0 })
    ;(await files()).rebuild()
    expect([existsSync(path('session')), existsSync(join(folder, 'sessions/conversation'))]).toEqual([false, false])
    await turn(2)
    expect(contents('session')).toEqual(['question 2', 'answer 2'])
  })
})
