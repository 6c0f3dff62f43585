import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { appendText, nextNumber } from './disk.ts'
import { freshMark, read } from './file-mark.ts'
import {
  appendSession,
  appendTrace,
  archiveSession,
  countSession,
  forgetPointer,
  loadSession,
  readPointer,
  writePointer,
} from './session-file.ts'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-agents-'))
  file = join(folder, 'sessions', 'current.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const at = Date.UTC(2026, 1, 12, 10, 0, 0, 789)

/** Runs this many processes at once, each with these lines of code, and waits for all. */
async function crowd(count: number, code: (n: number) => string): Promise<void> {
  const start = (n: number) => [process.execPath, '--config=/dev/null', '--no-env-file', '-e', code(n)]
  const children = Array.from({ length: count }, (_, n) => Bun.spawn(start(n), { stdio: ['ignore', 'ignore', 'inherit'] }))
  expect(await Promise.all(children.map((child) => child.exited))).toEqual(children.map(() => 0))
}

describe('a session', () => {
  test('a torn line, a foreign one and an edited one are left out and named; the next line stands alone', () => {
    appendSession(file, [{ role: 'user', content: 'one' }], at)
    appendFileSync(file, '[]\n\n{"role":"user"}\n{"role":"user","content":"no time"}\n{"ts":"2026","role":"us')
    appendSession(file, [{ role: 'user', content: 'two' }], at)
    const { entries, unreadable } = loadSession(file)
    expect(entries.map(({ content }) => content)).toEqual(['one', 'no time', 'two'])
    expect(unreadable).toEqual([2, 4, 6])
    expect(countSession(file)).toBe(3)
  })

  test('a folder or a FIFO in its place is an error, and no wait', () => {
    mkdirSync(file, { recursive: true })
    expect(() => appendSession(file, [{ role: 'user', content: 'x' }], at)).toThrow('EISDIR')
    const fifo = join(folder, 'fifo')
    Bun.spawnSync(['mkfifo', fifo])
    expect(() => appendText(fifo, 'x\n')).toThrow('is not a regular file')
    expect(() => loadSession(fifo)).toThrow('is not a regular file')
  })

  test('a line of more than 64 MiB is named, and the one after it is read', () => {
    appendSession(file, [{ role: 'user', content: 'one' }], at)
    truncateSync(file, 65 * 1024 * 1024)
    appendFileSync(file, '\n')
    appendSession(file, [{ role: 'user', content: 'two' }], at)
    const { entries, unreadable } = loadSession(file)
    expect(entries.map(({ content }) => content)).toEqual(['one', 'two'])
    expect(unreadable).toEqual([2])
  })

  test('a link to a file of somebody else is not read for what other programs wrote', () => {
    const outside = join(folder, 'outside.jsonl')
    writeFileSync(outside, 'not ours\n')
    symlinkSync(outside, join(folder, 'link.jsonl'))
    expect(() => read(join(folder, 'link.jsonl'), freshMark)).toThrow('ELOOP')
    expect(read(outside, freshMark)).toMatchObject({ size: 9, replaced: false })
  })

  test('is exactly the lines that jq expects, private, and whatever was said comes back', () => {
    appendSession(file, [{ role: 'user', content: 'say "hi"\n\u2028' }], at)
    expect(readFileSync(file, 'utf8')).toBe('{"ts":"2026-02-12T10:00:00Z","role":"user","content":"say \\"hi\\"\\n\u2028"}\n')
    expect([statSync(file).mode & 0o777, statSync(join(folder, 'sessions')).mode & 0o777]).toEqual([0o600, 0o700])
    const said = fc.array(fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.string({ unit: 'binary' }) }), {
      maxLength: 9,
    })
    fc.assert(
      fc.property(said, fc.nat({ max: 10 }), (turns, limit) => {
        rmSync(file, { force: true })
        for (const turn of turns) appendSession(file, [turn], at)
        const { entries, unreadable } = loadSession(file, limit)
        const wanted = turns.slice(Math.max(0, turns.length - limit)).map((turn) => ({ ts: '2026-02-12T10:00:00Z', ...turn }))
        expect([entries, unreadable]).toEqual([JSON.parse(JSON.stringify(wanted)), []])
      }),
      { numRuns: 12 },
    )
  })

  test('a surrogate without its other half does not make a line unreadable', () => {
    appendSession(file, [{ role: 'user', content: 'a\ud800b' }], at)
    expect(loadSession(file).entries[0]?.content).toBe('a\ufffdb')
  })

  test('archived by name of the moment, never over another', () => {
    expect(archiveSession(file, at)).toBeUndefined()
    for (const content of ['one', 'two']) {
      appendSession(file, [{ role: 'user', content }], at)
      archiveSession(file, at)
    }
    const names = readdirSync(join(folder, 'sessions')).sort()
    expect(names).toEqual(['2026-02-12T10-00-00.789Z-2.jsonl', '2026-02-12T10-00-00.789Z.jsonl'])
    expect(names.map((name) => loadSession(join(folder, 'sessions', name)).entries[0]?.content)).toEqual(['two', 'one'])
    expect(loadSession(file)).toEqual({ entries: [], unreadable: [] })
  })

  test('four processes with lines of 100 KB: every pair whole and side by side', async () => {
    const session = join(import.meta.dir, 'session-file.ts')
    await crowd(4, (n) => {
      const said = `[{role:'user',content:'${n}'.repeat(100_000)+i},{role:'assistant',content:'${n}.'+i}]`
      return `const {appendSession} = await import(${JSON.stringify(session)}); for (let i = 0; i < 25; i++) appendSession(${JSON.stringify(file)}, ${said}, 0)`
    })
    const { entries, unreadable } = loadSession(file)
    expect([entries.length, unreadable]).toEqual([200, []])
    for (let n = 0; n < entries.length; n += 2) {
      const [question, answer] = entries.slice(n, n + 2)
      expect(answer?.content).toBe(`${question?.content[0]}.${question?.content.slice(100_000)}`)
    }
  })
})

test('the trace has its four keys in order', () => {
  appendTrace(join(folder, 'agent.jsonl'), { agent: 'default', event: 'user_input', message: 'a\nb' }, at)
  expect(readFileSync(join(folder, 'agent.jsonl'), 'utf8')).toBe(
    '{"ts":"2026-02-12T10:00:00Z","agent":"default","event":"user_input","message":"a\\nb"}\n',
  )
})

describe('the pointer', () => {
  test('what is no id, or not there, is none', () => {
    const path = join(folder, 'sessions', 'conversation')
    expect(readPointer(path)).toBeUndefined()
    for (const text of ['', '../../etc', 'a b', 'x'.repeat(200)]) {
      mkdirSync(join(folder, 'sessions'), { recursive: true })
      writeFileSync(path, text)
      expect(readPointer(path)).toBeUndefined()
    }
  })

  test('replaced whole, forgotten, nothing left beside it', () => {
    const path = join(folder, 'sessions', 'conversation')
    writePointer(path, 'conversation_1')
    writePointer(path, 'conversation_2')
    expect([readPointer(path), readdirSync(join(folder, 'sessions'))]).toEqual(['conversation_2', ['conversation']])
    forgetPointer(path)
    expect([readPointer(path), existsSync(path)]).toEqual([undefined, false])
  })
})

test('numbers of the stub: one each, none twice, also when five processes ask at once', async () => {
  const path = join(folder, 'stub.calls')
  expect([nextNumber(path), nextNumber(path)]).toEqual([1, 2])
  const [stub, out] = [join(import.meta.dir, 'disk.ts'), join(folder, 'out')]
  await crowd(5, () => {
    const line = `appendFileSync(${JSON.stringify(out)}, nextNumber(${JSON.stringify(path)}) + '\\n')`
    return `const {nextNumber} = await import(${JSON.stringify(stub)}); const {appendFileSync} = await import('node:fs'); for (let i = 0; i < 20; i++) ${line}`
  })
  const numbers = readFileSync(out, 'utf8').trim().split('\n').map(Number)
  expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n + 3))
})
