import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, chmodSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Summarise } from '../conversations/compact.ts'
import { type AgentFolderFixture, createAgentFolderFixture, historyOf, line, never, upTo } from './fixture.ts'

let den: AgentFolderFixture
beforeEach(() => {
  den = createAgentFolderFixture()
})
afterEach(() => den.remove())

const sha = (text: string) => Bun.SHA256.hash(text, 'hex')
const upToNoting =
  (texts: string[]): Summarise =>
  (request, signal) => {
    texts.push(request.text)
    return upTo(request, signal)
  }

/** Returns how many bytes this process has read from any file. */
const bytesRead = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

describe('a compaction', () => {
  const bound: Summarise = async () => {
    throw new Error('nobody should ask')
  }

  test('waits until there are more messages than the limit', async () => {
    den.fill(5)
    expect(await den.open().compact(bound, never())).toEqual({ state: 'idle' })
    den.fill(6)
    expect(await den.open({ max: 200, keep: 40 }).compact(bound, never())).toEqual({ state: 'idle' })
  })

  test('asks in the words of the design, with the lines as they stand', async () => {
    den.write('summary.md', 'The user is Marc.\n')
    den.fill(6)
    const asked: unknown[] = []
    const summarise: Summarise = async (request) => {
      asked.push(request)
      return { ok: true, text: ' new summary\n', model: 'small' }
    }
    expect(await den.open().compact(summarise, never())).toEqual({ state: 'done', messages: 8, model: 'small' })
    expect(asked).toEqual([
      {
        system:
          'You are a memory compaction assistant. Summarize the following conversation, preserving: key facts about the user, their preferences, decisions made, ongoing projects, and important context. Be concise but complete. Output only the summary, no preamble.',
        text: `EXISTING SUMMARY:\nThe user is Marc.\n\nCONVERSATION TO SUMMARIZE:\n${historyOf(1, 4).trimEnd()}`,
        maxTokens: 2048,
      },
    ])
    expect(den.read('summary.md')).toBe('new summary\n')
    expect(den.read('history.jsonl')).toBe(historyOf(5, 2))
  })

  test('leaves a record with digests, and every line that went in the archive', async () => {
    den.fill(6)
    const recall = den.open()
    await recall.compact(upTo, never())
    for (let at = 7; at <= 10; at += 1) recall.remember(`q${at}`, `a${at}`)
    await recall.compact(upTo, never())
    const [first, second] = den
      .read('compactions.jsonl')
      .trim()
      .split('\n')
      .map((each) => JSON.parse(each))
    expect(first).toEqual({
      v: 1,
      at: '2026-05-12T12:00:00.000Z',
      model: 'small',
      from_line: 1,
      to_line: 8,
      messages: 8,
      source_sha256: sha(historyOf(1, 4)),
      previous_sha256: sha(''),
      summary_sha256: sha('up to a4\n'),
      edited: false,
    })
    expect(second).toMatchObject({ from_line: 9, to_line: 16, previous_sha256: first.summary_sha256, edited: false })
    expect(den.read('history.archive.jsonl')).toBe(historyOf(1, 8))
    expect(
      sha(
        den
          .read('history.archive.jsonl')
          .split('\n')
          .slice(8, 16)
          .map((each) => `${each}\n`)
          .join(''),
      ),
    ).toBe(second.source_sha256)
  })

  test('takes a summary that was edited by hand as the one there is, and notes that it was', async () => {
    den.fill(6)
    const recall = den.open()
    await recall.compact(upTo, never())
    den.write('summary.md', 'by hand')
    for (let at = 7; at <= 10; at += 1) recall.remember(`q${at}`, `a${at}`)
    const texts: string[] = []
    await recall.compact(upToNoting(texts), never())
    expect(texts[0]).toStartWith('EXISTING SUMMARY:\nby hand\n\n')
    expect(
      den
        .read('compactions.jsonl')
        .trim()
        .split('\n')
        .map((each) => JSON.parse(each).edited),
    ).toEqual([false, true])
  })

  test.each<[string, Summarise]>([
    ['an error', async () => ({ ok: false, message: 'timeout' })],
    ['an empty answer', async () => ({ ok: true, text: ' \n', model: 'm' })],
    ['an absurdly long answer', async () => ({ ok: true, text: 'x'.repeat(40_000), model: 'm' })],
    ['an exception', async () => Promise.reject(new Error('broken'))],
  ])('that meets %s changes nothing, and is not tried again with every turn', async (_, summarise) => {
    den.fill(6)
    den.write('summary.md', 'old')
    const attempt = () => den.open().compact(summarise, never())
    expect(await attempt()).toMatchObject({ state: 'failed' })
    expect([den.read('summary.md'), den.read('history.jsonl')]).toEqual(['old', historyOf(1, 6)])
    expect(await attempt()).toMatchObject({ state: 'waiting', until: den.clock.now + 60_000 })
    den.clock.now += 60_000
    expect(await attempt()).toMatchObject({ state: 'failed' })
    den.clock.now += 60_000
    expect(await attempt()).toMatchObject({ state: 'waiting' })
    den.clock.now += 60_000
    expect(await den.open().compact(upTo, never())).toMatchObject({ state: 'done' })
    expect(readdirSync(den.folder)).not.toContain('compaction.failures.json')
  })

  test('that waits after a failure costs no turn a look at the whole history', async () => {
    den.fill(20_000)
    const recall = den.open()
    expect(await recall.compact(async () => ({ ok: false, message: 'timeout' }), never())).toMatchObject({ state: 'failed' })
    recall.context(10_000)
    const before = bytesRead()
    for (let turn = 1; turn <= 5; turn += 1) {
      appendFileSync(join(den.folder, 'history.jsonl'), historyOf(20_000 + turn, 1))
      expect(recall.context(10_000).messages.at(-1)).toMatchObject({ parts: [{ text: `a${20_000 + turn}` }] })
      expect(await recall.compact(upTo, never())).toMatchObject({ state: 'waiting' })
    }
    expect(den.read('history.jsonl').length).toBeGreaterThan(1_000_000)
    expect(bytesRead() - before - den.read('history.jsonl').length).toBeLessThan(200_000)
  })

  test('does not wait for ever when the clock was set back', async () => {
    den.fill(6)
    await den.open().compact(async () => ({ ok: false, message: 'no' }), never())
    den.clock.now -= 1_000_000
    expect(await den.open().compact(upTo, never())).toMatchObject({ state: 'done' })
  })

  test.each<[string, () => void]>([
    ['the summary', () => den.write('summary.md', 'by hand')],
    ['the lines', () => den.write('history.jsonl', historyOf(2, 6))],
  ])('drops its answer when somebody edited %s meanwhile', async (_, edit) => {
    den.fill(6)
    const before = () => [den.read('summary.md'), den.read('history.jsonl')]
    const files: string[][] = []
    const outcome = await den.open().compact(async (request) => {
      edit()
      files.push(before())
      return upTo(request, never())
    }, never())
    expect([outcome, before()]).toEqual([{ state: 'changed' }, files[0] ?? []])
  })

  test('keeps what is said while the model thinks', async () => {
    den.fill(6)
    const [recall, other] = [den.open(), den.open()]
    await recall.compact(async (request) => {
      other.remember('q7', 'a7')
      return upTo(request, never())
    }, never())
    expect(den.read('history.jsonl')).toBe(historyOf(5, 3))
    expect(recall.context(1000).messages.map((message) => message.role === 'user' && message.content)).toEqual(['q6', false, 'q7', false])
  })

  test('is made by one at a time, and a cancelled one changes nothing', async () => {
    den.fill(6)
    const cancel = new AbortController()
    const [first, second] = await Promise.all([
      den.open().compact(async (request) => {
        await Bun.sleep(1)
        cancel.abort()
        return upTo(request, never())
      }, cancel.signal),
      den.open().compact(bound, never()),
    ])
    expect([first, second]).toEqual([{ state: 'cancelled' }, { state: 'busy' }])
    expect(den.read('history.jsonl')).toBe(historyOf(1, 6))
    expect(await den.open().compact(upTo, never())).toMatchObject({ state: 'done' })
  })

  test('takes a long history piece by piece, and of one huge message the middle is left out and said', async () => {
    den.write('history.jsonl', `${historyOf(1, 20)}`)
    const portionBytes = Buffer.byteLength(historyOf(1, 5))
    const recall = den.open({ portionBytes })
    await recall.compact(upTo, never())
    expect(den.read('history.jsonl')).toBe(historyOf(6, 15))
    den.write('history.jsonl', `${line('user', 'A'.repeat(5000))}\n${line('assistant', 'a2')}\n${historyOf(3, 6)}`)
    const texts: string[] = []
    await recall.compact(upToNoting(texts), never())
    expect(texts[0]?.length).toBeLessThan(1000)
    expect(texts[0]).toMatch(/A{10,} \[\d+ characters left out\] A{10,}/)
    expect(den.read('history.jsonl')).toBe(historyOf(3, 6))
  })

  test('does not merge a summary that somebody made longer than fits: it says so and changes nothing', async () => {
    den.fill(6)
    den.write('summary.md', 'x'.repeat(70_000))
    expect(await den.open().compact(bound, never())).toMatchObject({ state: 'failed', message: expect.stringContaining('shorten it') })
    expect(den.read('history.jsonl')).toBe(historyOf(1, 6))
  })

  test('does not begin for lines that are no messages', async () => {
    den.write('history.jsonl', `${'rubbish\n'.repeat(300)}${historyOf(1, 5)}`)
    expect(await den.open().compact(bound, never())).toEqual({ state: 'idle' })
  })

  test('leaves pins alone, and the modes of the files', async () => {
    den.fill(6)
    den.write('summary.md', 'old')
    chmodSync(join(den.folder, 'history.jsonl'), 0o644)
    chmodSync(join(den.folder, 'summary.md'), 0o640)
    const recall = den.open()
    recall.pins.add('never   reworded')
    const before = den.read('pins.jsonl')
    await recall.compact(upTo, never())
    expect(den.read('pins.jsonl')).toBe(before)
    expect(recall.system()).toEndWith('- never   reworded')
    expect(lstatSync(join(den.folder, 'history.jsonl')).mode & 0o777).toBe(0o644)
    expect(lstatSync(join(den.folder, 'summary.md')).mode & 0o777).toBe(0o640)
    expect(lstatSync(join(den.folder, 'pins.jsonl')).mode & 0o777).toBe(0o600)
  })
})
