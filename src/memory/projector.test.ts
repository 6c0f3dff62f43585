/** Tests the files of an agent after crashes: every committed line appears once, however much of it had been written. */

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentStage, createAgentStage, told } from './agent-files/agent-stage.fixture.ts'
import { searchIn } from './fixture.ts'
import { recoverRuns } from './recovery/interrupted-runs.ts'

function alter(path: string, sql: string): void {
  using db = new Database(path)
  db.run(sql)
}

let at: AgentStage
beforeEach(async () => {
  at = createAgentStage(alter)
  await at.memoryStage.memory.files.prepare()
})
afterEach(() => at.memoryStage.remove())

describe('after a crash', () => {
  test.each([
    [3, 1],
    [3, 2],
    [3, 3],
  ])('%i commits of which %i were not written: each line stands once, from the next turn on', async (commits, unwritten) => {
    await at.turn(1)
    at.crash(2, { commits, unwritten })
    expect(at.events().length).toBe(4 + told(2).length - ([0, 1, 3, 4][unwritten] ?? 0))
    await at.turn(3)
    await at.turn(4)
    expect(at.events().toSorted()).toEqual([1, 2, 3, 4].flatMap(told).toSorted())
    expect(at.contents('session')).toEqual([1, 2, 3, 4].flatMap((n) => [`question ${n}`, `answer ${n}`]))
    expect(at.contents('history')).toEqual(at.contents('session'))
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test.each([1, 30, 66])(
    'a line of which only %i bytes were written is written whole; the torn part stays, and is no message',
    async (count) => {
      await at.turn(1)
      at.crash(2, { commits: 3, unwritten: 1 })
      const line = JSON.stringify({ ts: '2026-05-12T12:00:00Z', role: 'user', content: 'question 2' })
      appendFileSync(at.placeOf('session'), line.slice(0, count))
      await at.turn(3)
      await at.turn(4)
      expect(at.contents('session')).toEqual([1, 2, 3, 4].flatMap((n) => [`question ${n}`, `answer ${n}`]))
      expect(at.text('session').split('\n')).toContain(line.slice(0, count))
      expect(at.memoryStage.memory.conversations.show('conversation_1').filter(({ content }) => content === 'question 2')).toHaveLength(1)
      expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
    },
  )

  test('a run that never ended is told up to where it came once it is closed', async () => {
    at.crash(1, { commits: 2, unwritten: 2 })
    recoverRuns(at.writer())
    await at.turn(2)
    expect(at.events()).toEqual([...told(1).slice(0, 3), ...told(2)])
    expect(at.contents('session')).toEqual(['question 1', 'question 2', 'answer 2'])
    expect(at.contents('history')).toEqual(['question 2', 'answer 2'])
  })

  test('a run of a process that is alive is left to it', async () => {
    const { write } = at.writer()
    for (const batch of at.batches(1)) write(at.identity(1), batch)
    const child = Bun.spawn(['sleep', '60'])
    const { ownerOf } = await import('./journal/process-owner.ts')
    alter(at.memoryStage.path, `UPDATE runs SET owner = '${ownerOf(child.pid)}' WHERE run_id = '${at.identity(1).runId}'`)
    await at.turn(2)
    expect(at.events()).toEqual(told(2))
    child.kill()
    await child.exited
    await at.turn(3)
    expect(at.events().toSorted()).toEqual([1, 2, 3].flatMap(told).toSorted())
  })
})

describe('lines of other programs', () => {
  const found = (query: string) => searchIn(at.memoryStage)({ query }).map(({ snippet }) => snippet)

  test('are journalled with file, line and digest before the next question, and found by search', async () => {
    await at.turn(1)
    appendFileSync(at.placeOf('session'), '{"ts":"x","role":"assistant","content":"the zebra said so"}\n')
    appendFileSync(at.placeOf('history'), '{"role":"user","content":"about the okapi"}\n')
    await at.turn(2)
    const notes = at.memoryStage.memory.journal.events('run-2').map(({ type, body }) => [type, body])
    expect(notes[0]).toEqual([
      'file.line',
      expect.objectContaining({ file: 'session', line: 3, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }),
    ])
    expect(notes.map(([type]) => type)).toEqual(['file.line', 'file.line', 'run.start', 'model.done', 'deny', 'model.done', 'finish'])
    expect([found('zebra'), found('okapi')]).toEqual([['the zebra said so'], ['about the okapi']])
    const shown = at.memoryStage.memory.conversations.show('conversation_1')
    expect(shown.find(({ content }) => content.includes('zebra'))).toMatchObject({
      role: 'assistant',
      metadata: { file: 'sessions/current.jsonl', line: 3 },
    })
  })

  test('are no question of the conversation: neither its turns nor its title count them, and the model is not told them', async () => {
    mkdirSync(join(at.folder, 'sessions'), { recursive: true })
    writeFileSync(at.placeOf('session'), '{"ts":"x","role":"user","content":"planted before"}\n')
    await at.turn(1)
    expect(at.memoryStage.memory.conversations.list()).toMatchObject([{ turns: 1, title: 'question 1' }])
    expect(JSON.stringify(at.memoryStage.memory.context('conversation_1', 10_000))).not.toContain('planted')
  })

  test('are taken in once, also what is no JSON and what has no end, and never what we wrote ourselves', async () => {
    await at.turn(1)
    appendFileSync(at.placeOf('session'), 'plain words of a giraffe\n\n{"role":"user","con')
    await at.turn(2)
    await at.turn(3)
    const notes = ['run-2', 'run-3'].map(
      (run) => at.memoryStage.memory.journal.events(run).filter(({ type }) => type === 'file.line').length,
    )
    expect(notes).toEqual([2, 0])
    expect(found('giraffe')).toHaveLength(1)
    expect(at.contents('session').length).toBe(6)
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('keep no secret in the journal', async () => {
    await at.turn(1)
    appendFileSync(at.placeOf('session'), '{"ts":"x","role":"user","content":"it is hunter2"}\n')
    await at.turn(2)
    expect(JSON.stringify(at.memoryStage.memory.journal.events('run-2'))).not.toContain('hunter2')
    expect(found('secret')).toHaveLength(1)
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('a file that was replaced by a shorter one: what is left of ours is no news, what is new is', async () => {
    await at.turn(1)
    await at.turn(2)
    const [, , third] = at.text('session').split('\n')
    writeFileSync(at.placeOf('session'), `${third}\n{"ts":"x","role":"user","content":"a new okapi"}\n`)
    await at.turn(3)
    const notes = at.memoryStage.memory.journal.events('run-3').filter(({ type }) => type === 'file.line')
    expect(notes.map(({ body }) => Object(body).text)).toEqual(['{"ts":"x","role":"user","content":"a new okapi"}'])
    expect(at.contents('session')).toEqual(['question 2', 'a new okapi', 'question 3', 'answer 3'])
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('a file that was taken away stays away', async () => {
    await at.turn(1)
    rmSync(at.placeOf('session'))
    await at.turn(2)
    expect(at.contents('session')).toEqual(['question 2', 'answer 2'])
  })

  test('a link in the place of a file is refused, said once, and the turn goes on', async () => {
    await at.turn(1)
    const outside = join(at.memoryStage.folder, 'outside.jsonl')
    writeFileSync(outside, 'not ours\n')
    rmSync(at.placeOf('session'))
    symlinkSync(outside, at.placeOf('session'))
    await at.turn(2)
    expect(readFileSync(outside, 'utf8')).toBe('not ours\n')
    expect(at.said.filter((line) => line.startsWith('warn'))).toEqual(['warn the files of the agent cannot be written'])
    expect(at.events()).toEqual([...told(1), ...told(2)])
  })
})
