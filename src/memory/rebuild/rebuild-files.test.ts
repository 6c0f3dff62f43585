/** Tests that the files of an agent are checked against the journal and rebuilt from it, byte for byte. */

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentStage, createAgentStage } from '../agent-files/agent-stage.fixture.ts'
import { searchIn } from '../fixture.ts'

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

describe('rebuild', () => {
  const bytes = () => (['trace', 'session', 'history'] as const).map(at.text)

  test('makes the same bytes, lines of other programs among them, when all files are gone', async () => {
    await at.turn(1)
    appendFileSync(at.placeOf('session'), '{"ts":"x","role":"user","content":"zebra"}\nplain\n')
    appendFileSync(at.placeOf('trace'), '{"ts":"x","agent":"default","event":"deploy","message":"done"}\n')
    await at.turn(2)
    const before = [...bytes(), readFileSync(join(at.folder, 'sessions/conversation'), 'utf8')]
    rmSync(at.folder, { recursive: true })
    expect((await at.files()).check().difference).toBeDefined()
    expect((await at.files()).rebuild().written).toHaveLength(4)
    expect([...bytes(), readFileSync(join(at.folder, 'sessions/conversation'), 'utf8')]).toEqual(before)
    await at.turn(3)
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
    expect(at.contents('history')).toEqual([1, 2, 3].flatMap((n) => [`question ${n}`, `answer ${n}`]))
  })

  test.each([
    ['trace', 'an altered line', (whole: string) => whole.replace('question 1', 'question 9')],
    ['session', 'a line that was taken out', (whole: string) => whole.replace(/.*question 2.*\n/, '')],
    ['history', 'a planted line', (whole: string) => whole.replace('\n', '\n{"role":"user","content":"x"}\n')],
  ] as const)('of %s with %s: named by the check, put right', async (file, _, alter) => {
    await at.turn(1)
    await at.turn(2)
    const before = bytes()
    writeFileSync(at.placeOf(file), alter(at.text(file)))
    expect((await at.files()).check().difference).toContain(at.placeOf(file))
    ;(await at.files()).rebuild()
    expect(bytes()).toEqual(before)
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
  })

  test('writes what a crash left unwritten, and the next turn does not write it again', async () => {
    await at.turn(1)
    at.crash(2, { commits: 3, unwritten: 3 })
    rmSync(at.placeOf('session'))
    ;(await at.files()).rebuild()
    await at.turn(3)
    expect(at.contents('session')).toEqual([1, 2, 3].flatMap((n) => [`question ${n}`, `answer ${n}`]))
  })

  test('keeps lines that were not taken in yet, for the next turn', async () => {
    await at.turn(1)
    writeFileSync(at.placeOf('session'), at.text('session').replace('answer 1', 'answer 9'))
    appendFileSync(at.placeOf('session'), 'later words\n')
    ;(await at.files()).rebuild()
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 1 })
    await at.turn(2)
    expect(searchIn(at.memoryStage)({ query: 'later' })).toHaveLength(1)
  })

  test('leaves a session that was reset empty, and its pointer away', async () => {
    await at.turn(1)
    at.memoryStage.memory.files.reset({ id: 'default', folder: at.folder, pointer: 'conversation' }, () => {
      rmSync(at.placeOf('session'))
      rmSync(join(at.folder, 'sessions/conversation'))
    })
    expect((await at.files()).check()).toEqual({ files: 3, untaken: 0 })
    ;(await at.files()).rebuild()
    expect([existsSync(at.placeOf('session')), existsSync(join(at.folder, 'sessions/conversation'))]).toEqual([false, false])
    await at.turn(2)
    expect(at.contents('session')).toEqual(['question 2', 'answer 2'])
  })
})
