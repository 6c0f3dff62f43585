import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { openLines } from './fifo-reader.ts'
import { openWriter, type Writer } from './fifo-writer.ts'
import { createFifoFixture, type FifoFixture } from './fixture.ts'
import { openPipe } from './open-pipe.ts'

let den: FifoFixture
let writer: Writer
beforeEach(async () => {
  den = await createFifoFixture()
  writer = openWriter(den.path('interact_out'))
})
afterEach(() => {
  writer.close()
  den.remove()
})

const soon = { timeoutMs: 30 }
const patient = { timeoutMs: 20_000 }
const line = (letter: string, length: number): string => `${letter.repeat(length)}\n`

/** Returns a summary of what a shell that reads this many lines gets: a letter and its count, for each line. */
async function read(count: number): Promise<string[]> {
  const script = den.script(`head -n ${count} < interact_out > got`)
  expect(await script.done).toBe(0)
  return readFileSync(den.path('got'), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((text) => `${[...new Set(text)].join('')}${text.length}`)
}

describe('while nobody reads', () => {
  test('a message that finds no room does not go out at all, and says so', async () => {
    expect(await writer.write(line('a', 65_000), patient)).toEqual({ ok: true })
    const late = await writer.write(line('b', 1000), soon)
    expect(late).toEqual({ ok: false, begun: false, message: `${den.path('interact_out')}: nobody made room for the message in 30 ms` })
    expect(await writer.write(line('c', 100), patient)).toEqual({ ok: true })
    expect(await read(2)).toEqual(['a65000', 'c100'])
  })

  test('a limit that lasts longer than a wait between two tries counts from the asking all the same', async () => {
    await writer.write(line('a', 65_000), patient)
    expect(await writer.write(line('b', 1000), { timeoutMs: 400 })).toMatchObject({ ok: false, begun: false })
  })

  test('one that finds room for its beginning goes out whole later, before any other', async () => {
    const begun = await writer.write(line('a', 100_000), soon)
    expect(begun).toMatchObject({ ok: false, begun: true })
    const next = writer.write(line('b', 10), patient)
    expect(await read(2)).toEqual(['a100000', 'b10'])
    expect(await next).toEqual({ ok: true })
  })

  test('one that was begun goes out without another one to push it', async () => {
    await writer.write(line('a', 100_000), soon)
    expect(await read(1)).toEqual(['a100000'])
  })

  test('64 KiB of answers wait in the pipe for a reader that comes later', async () => {
    for (let number = 0; number < 60; number += 1) expect(await writer.write(line('x', 1000), soon)).toEqual({ ok: true })
    expect(await read(60)).toEqual(Array(60).fill('x1000'))
  })

  test('a message is cancelled before it has begun, and not sent after that', async () => {
    await writer.write(line('a', 65_000), patient)
    const stop = new AbortController()
    const cancelled = writer.write(line('b', 1000), { ...patient, signal: stop.signal })
    stop.abort()
    expect(await cancelled).toMatchObject({ ok: false, begun: false })
    expect(await writer.write(line('d', 1), { ...patient, signal: AbortSignal.abort() })).toMatchObject({ ok: false })
    const last = writer.write(line('c', 1000), patient)
    expect(await read(2)).toEqual(['a65000', 'c1000'])
    expect(await last).toEqual({ ok: true })
  })

  test('closing gives up what waits, and everything later', async () => {
    await writer.write(line('a', 65_000), patient)
    const waiting = writer.write(line('b', 1000), patient)
    writer.close()
    expect(await waiting).toMatchObject({ ok: false, begun: false })
    expect(await writer.write('x\n', patient)).toMatchObject({ ok: false, begun: false })
    writer.close()
  })
})

test('a reader who is slow but reads is waited for longer than one who does not, and so are the messages behind', async () => {
  const reader = openPipe(den.path('interact_out'))
  const limit = { timeoutMs: 600 }
  const all = Promise.all([writer.write(line('a', 200_000), limit), writer.write(line('b', 20_000), limit)])
  const asked = performance.now()
  const slowly = setInterval(() => reader.read(), 30)
  expect(await all).toEqual([{ ok: true }, { ok: true }])
  clearInterval(slowly)
  expect(performance.now() - asked).toBeGreaterThan(limit.timeoutMs)
  reader.close()
})

test('a reader may die and return: what it has not read is still there', async () => {
  await writer.write('1\n', patient)
  const first = den.script('read -r line < interact_out; kill -9 $$')
  await first.done
  await writer.write('2\n', patient)
  expect(await read(1)).toEqual(['21'])
})

test('messages of several processes up to 4,096 bytes are not mixed', async () => {
  const stop = new AbortController()
  const source = openLines(den.path('interact_out'), { signal: stop.signal })
  const shells = ['a', 'b', 'c'].map((letter) =>
    den.script(
      `text=$(printf '%02000d' 0 | tr 0 ${letter}); for i in 1 2 3 4 5 6 7 8 9 10; do printf '%s\\n' "$text" > interact_out; done`,
    ),
  )
  const ours = Promise.all(Array.from({ length: 10 }, () => writer.write(line('d', 4000), patient)))
  const got: string[] = []
  while (got.length < 40) {
    const { value } = await source.next()
    got.push(value?.ok ? `${[...new Set(value.text)].join('')}${value.text.length}` : 'trouble')
  }
  stop.abort()
  await Promise.all([ours, ...shells.map((shell) => shell.done)])
  expect(got.sort()).toEqual([
    ...Array(10).fill('a2000'),
    ...Array(10).fill('b2000'),
    ...Array(10).fill('c2000'),
    ...Array(10).fill('d4000'),
  ])
})
