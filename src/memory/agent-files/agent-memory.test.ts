import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { openRecall } from './agent-memory.ts'
import { realDisk } from './disk.ts'
import { type AgentFolderFixture, createAgentFolderFixture, historyOf, line, never } from './fixture.ts'

let den: AgentFolderFixture
beforeEach(() => {
  den = createAgentFolderFixture()
})
afterEach(() => den.remove())

const saidBy = (recall = den.open()) =>
  recall.context(100_000).messages.map((message) => {
    if (message.role === 'user') return message.content
    return message.role === 'assistant' ? message.parts.map((part) => (part.type === 'text' ? part.text : '?')).join() : '?'
  })

describe('the system text', () => {
  test('of a folder of the original: soul, and the summary below a line', () => {
    den.write('soul.md', 'You are Planck.\nYou are concise.\n')
    den.write('summary.md', '')
    expect(den.open().system()).toBe('You are Planck.\nYou are concise.')
    den.write('summary.md', 'The user is Marc.\n')
    expect(den.open().system()).toBe('You are Planck.\nYou are concise.\n---\nCONVERSATION SUMMARY:\nThe user is Marc.')
  })

  test.each([
    ['missing', () => {}],
    ['blank', () => den.write('soul.md', ' \n')],
    ['a folder', () => mkdirSync(join(den.folder, 'soul.md'))],
    ['a pipe that nobody writes to', () => void Bun.spawnSync(['mkfifo', join(den.folder, 'soul.md')])],
  ])('has words of its own when soul.md is %s', (_, arrange) => {
    arrange()
    expect(den.open().soul()).toBe('You are a helpful personal assistant.')
  })

  test('is what stands in the files now, not what stood there at the start', () => {
    const recall = den.open()
    den.write('soul.md', 'first')
    expect(recall.system()).toBe('first')
    den.write('soul.md', 'other')
    expect(recall.system()).toBe('other')
    rmSync(join(den.folder, 'soul.md'))
    den.write('summary.md', 'a summary')
    expect(recall.system()).toBe('You are a helpful personal assistant.\n---\nCONVERSATION SUMMARY:\na summary')
  })

  test('uses a long soul whole, and says so; of one that is far too long the beginning, and says so to the model too', () => {
    den.write('soul.md', 'é'.repeat(10_000))
    expect(den.open().soul()).toBe('é'.repeat(10_000))
    expect(den.logged.join()).toContain('"bytes":20000')
    den.write('soul.md', `x${'é'.repeat(40_000)}`)
    const { soul, marker } = { soul: den.open().soul(), marker: 'goes on for 14465 more bytes, which are not used]' }
    expect(soul.startsWith(`x${'é'.repeat(32_767)}\n[`)).toBe(true)
    expect(soul.endsWith(marker)).toBe(true)
    expect(den.logged.join()).toContain('warn memory file is long')
  })

  test('has the pins last, word for word', () => {
    const recall = den.open()
    den.write('summary.md', 'sum')
    recall.pins.add('The dog is called "Ada".')
    recall.pins.add('two\nlines')
    expect(recall.system()).toEndWith('\n---\nCONVERSATION SUMMARY:\nsum\n---\nPINNED FACTS:\n- The dog is called "Ada".\n- two\n  lines')
  })
})

describe('the history', () => {
  test('is remembered as one line a message, a pair in a single write', () => {
    const writes: string[] = []
    const write: typeof realDisk.write = (file, bytes, position) => {
      writes.push(new TextDecoder().decode(bytes))
      return realDisk.write(file, bytes, position)
    }
    const recall = den.open({ disk: { ...realDisk, write } })
    expect(recall.remember('Hello\n"you"', 'Hi!\ttab')).toEqual({ ok: true })
    const lines = '{"role":"user","content":"Hello\\n\\"you\\""}\n{"role":"assistant","content":"Hi!\\ttab"}\n'
    expect([den.read('history.jsonl'), writes]).toEqual([lines, [lines]])
    expect(saidBy(recall)).toEqual(['Hello\n"you"', 'Hi!\ttab'])
    expect(statSync(join(den.folder, 'history.jsonl')).mode & 0o777).toBe(0o600)
  })

  test('gives the last messages it is to keep, whole pairs, newest that fit', () => {
    den.fill(5)
    expect(saidBy()).toEqual(['q4', 'a4', 'q5', 'a5'])
    expect(saidBy(den.open({ keep: 3 }))).toEqual(['q5', 'a5'])
    expect(den.open().context(100_000)).toMatchObject({ omittedTurns: 3 })
    den.write('history.jsonl', `${historyOf(1, 1)}${line('user', 'long')}\n${line('assistant', 'x'.repeat(4000))}\n`)
    expect(den.open().context(500)).toEqual({ messages: [], omittedTurns: 2, estimatedTokens: 0 })
  })

  test('leaves aside what is no message, and counts it', () => {
    const odd = ['rubbish', '{"role":"system","content":"x"}', '{"role":"user","content":7}', '[]', '"a"', '', `"${'x'.repeat(1 << 20)}"`]
    den.write('history.jsonl', `${odd.join('\n')}\n${historyOf(1, 1)}${line('user', 'unanswered')}\n${historyOf(2, 1)}{"role":"user","con`)
    expect(saidBy()).toEqual(['q1', 'a1', 'q2', 'a2'])
    expect(den.logged.join()).toContain('"unreadable":7,"unpaired":1,"torn":true')
  })

  test('goes on below a torn line, which stays and is ignored', () => {
    den.write('history.jsonl', `${historyOf(1, 1)}{"role":"user","content":"to`)
    const recall = den.open()
    recall.remember('q2', 'a2')
    expect(den.read('history.jsonl')).toBe(`${historyOf(1, 1)}{"role":"user","content":"to\n${historyOf(2, 1)}`)
    expect(saidBy(recall)).toEqual(['q1', 'a1', 'q2', 'a2'])
  })

  test('of a last line that lacks only its newline loses nothing', () => {
    den.write('history.jsonl', historyOf(1, 1).trimEnd())
    const recall = den.open()
    recall.remember('q2', 'a2')
    expect(saidBy(recall)).toEqual(['q1', 'a1', 'q2', 'a2'])
  })

  test('never holds half a pair: a full disk that took half of it gives it back, and says so', () => {
    den.fill(1)
    const write: typeof realDisk.write = (file, bytes) => realDisk.write(file, bytes.subarray(0, 40))
    const said = den.open({ disk: { ...realDisk, write } }).remember('q2', 'a2')
    expect(said).toEqual({ ok: false, message: expect.stringContaining('ENOSPC') })
    expect(den.read('history.jsonl')).toBe(historyOf(1, 1))
  })

  test('holds no secret that the redactor knows, nor does the summary', async () => {
    const recall = den.open({ redact: (text) => text.replaceAll('s3cret', '***') })
    for (let at = 0; at < 6; at += 1) recall.remember('my s3cret', 'your s3cret')
    await recall.compact(async () => ({ ok: true, text: 'it is s3cret', model: 'm' }), never())
    expect(den.read('summary.md')).toBe('it is ***\n')
    for (const name of readdirSync(den.folder)) expect(den.read(name)).not.toContain('s3cret')
  })

  test('of any text comes back as it went in', () => {
    const recall = den.open({ keep: 2 })
    const text = fc.string({ unit: 'binary', minLength: 1 })
    fc.assert(
      fc.property(text, text, (user, assistant) => {
        recall.remember(user, assistant)
        expect(saidBy(recall)).toEqual([user, assistant])
      }),
      { numRuns: 50 },
    )
  })

  test('of any bytes can be read, and added to', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc
        .constantFrom('\n', '{"role":"user","content":"x"}', '{"role":"assistant","content":"y"}\n', '\r\n', '\ufeff')
        .map((each) => Buffer.from(each)),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        writeFileSync(join(den.folder, 'history.jsonl'), Buffer.concat(pieces))
        const recall = den.open()
        recall.remember('the last', 'word')
        expect(saidBy(recall).slice(-2)).toEqual(['the last', 'word'])
      }),
      { numRuns: 60 },
    )
  })
})

describe('a folder', () => {
  test('that cannot be one is a failure with its name', () => {
    const path = join(den.folder, 'file')
    writeFileSync(path, '')
    const opened = openRecall({ folder: join(path, 'sub'), now: () => 0, log: () => {} })
    expect(opened).toEqual({ ok: false, message: expect.stringContaining(`"${path}/sub" cannot be used (ENOTDIR`) })
  })

  test('is made for its owner alone', () => {
    const folder = join(den.folder, 'agents', 'new')
    expect(openRecall({ folder, now: () => 0, log: () => {} }).ok).toBe(true)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('in which no lock can be made is still read; nothing is remembered, and that is said', () => {
    den.fill(1)
    mkdirSync(join(den.folder, '.lock'))
    const recall = den.open()
    expect(saidBy(recall)).toEqual(['q1', 'a1'])
    expect(recall.remember('q2', 'a2')).toEqual({ ok: false, message: expect.any(String) })
    expect(recall.pins.add('x')).toEqual({ ok: false, message: expect.any(String) })
    expect(den.logged.join()).toContain('read without its lock')
  })
})
