import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { createFifos } from './fifo-folder.ts'
import { openFrames, openLines } from './fifo-reader.ts'
import { cpuMs, createFifoFixture, type FifoFixture } from './fixture.ts'
import { openPipe } from './open-pipe.ts'

let den: FifoFixture
let stopping: AbortController
beforeEach(async () => {
  den = await createFifoFixture()
  stopping = new AbortController()
})
afterEach(() => {
  stopping.abort()
  den.remove()
})

const lines = (maxBytes?: number) => openLines(den.path('interact_in'), { signal: stopping.signal, maxBytes })

/** Returns the next lines as text; for a line that is no text, its error. */
async function next(source: ReturnType<typeof lines>, count: number): Promise<string[]> {
  const found: string[] = []
  while (found.length < count) {
    const { value, done } = await source.next()
    if (done) break
    found.push(value.ok ? value.text : `! ${value.error}`)
  }
  return found
}

describe('trouble', () => {
  test('a line that is too long is told, and the next is whole', async () => {
    const source = lines(10)
    den.script('{ printf "1234567890123"; sleep 0.1; printf "45\\nnext\\n"; } > interact_in')
    expect(await next(source, 2)).toEqual(['! longer than 10 bytes', 'next'])
  })

  test('a FIFO that is removed or replaced under us is told, and ends it', async () => {
    const source = lines()
    rmSync(den.path('interact_in'))
    await createFifos(den.dir)
    const told = `! ${den.path('interact_in')} was removed or replaced; start again to open the new one`
    expect(await next(source, 2)).toEqual([told])
  })

  test('what is not there is an error at once', () => {
    expect(() => openLines(den.path('nobody'), { signal: stopping.signal })).toThrow('ENOENT')
  })
})

describe('a writer that is killed in the middle of a line', () => {
  const half = (text: string) => `exec 5> interact_in; printf '${text}' >&5; touch half; sleep 600`
  const isThere = async (name: string): Promise<void> => {
    while (!(await Bun.file(den.path(name)).exists())) await Bun.sleep(5)
  }

  test('does not take the line of the next one with it', async () => {
    const source = lines()
    const told = next(source, 2)
    const writer = den.script(half('1\\tdelete ev'))
    await isThere('half')
    await writer.kill()
    await Bun.sleep(60)
    den.script('printf "2\\thello\\n" > interact_in')
    expect(await told).toEqual(['! cut off: it has no newline', '2\thello'])
  })

  test('nor when others have the FIFO open all the time', async () => {
    const held = openPipe(den.path('interact_in'))
    const source = lines()
    const told = next(source, 3)
    const writer = den.script(half('1'))
    await isThere('half')
    await writer.kill()
    await Bun.sleep(400)
    held.write(Buffer.from('2\thello\n3\tand on'))
    await Bun.sleep(400)
    held.write(Buffer.from(' it goes\n'))
    expect(await told).toEqual(['! cut off: it has no newline', '2\thello', '3\tand on it goes'])
    held.close()
  })

  test('is told, with what it wrote, when nobody writes any more', async () => {
    const source = lines()
    const told = source.next()
    await den.script('printf "me\\tno newline" > interact_in').done
    expect((await told).value).toEqual({ ok: false, text: 'me\tno newline', error: 'cut off: it has no newline' })
  })

  test('is waited for as long as it lives', async () => {
    const source = lines()
    den.script('{ printf "1\\tslow"; sleep 0.6; printf " but\\n"; } > interact_in')
    expect(await next(source, 1)).toEqual(['1\tslow but'])
  })
})

describe('lines', () => {
  test('come from whoever writes first or last, one after the other, many at once', async () => {
    const early = den.script('printf "1\\tearly\\n" > interact_in')
    const source = lines()
    expect(await next(source, 1)).toEqual(['1\tearly'])
    expect(await early.done).toBe(0)
    den.script('for i in 1 2 3; do printf "$i\\n" > interact_in; done')
    expect(await next(source, 3)).toEqual(['1', '2', '3'])
    den.script('seq 1 5000 > interact_in')
    expect(await next(source, 5000)).toEqual(Array.from({ length: 5000 }, (_, at) => String(at + 1)))
  })

  test('are whole when a writer pauses in the middle, also of a character', async () => {
    const source = lines()
    den.script(String.raw`{ printf 'h\303'; sleep 0.05; printf '\251\n\377\n'; } > interact_in`)
    expect(await next(source, 2)).toEqual(['hé', '\ufffd'])
  })

  test('longer than any pipe come whole', async () => {
    const source = lines()
    writeFileSync(den.path('long'), `${'x'.repeat(300_000)}\nend\n`)
    den.script('cat long > interact_in')
    expect((await next(source, 2)).map((line) => line.length)).toEqual([300_000, 3])
  })

  test('that were written while nobody was listening are there when it begins, as long as somebody holds the FIFO', async () => {
    const held = openPipe(den.path('interact_in'))
    await den.script('printf "kept\\n" > interact_in').done
    expect(await next(lines(), 1)).toEqual(['kept'])
    held.close()
  })

  test('end when told to, at once, also when nobody ever asked for one', async () => {
    const [idle, unused] = [lines(), lines()]
    const waiting = idle.next()
    stopping.abort()
    expect((await waiting).done).toBe(true)
    expect((await unused.next()).done).toBe(true)
    expect((await lines().next()).done).toBe(true)
  })

  test('leave no descriptor behind, however they end', async () => {
    const { readdirSync } = await import('node:fs')
    const count = (): number => readdirSync('/proc/self/fd').length
    await next(lines(0x1000), 0)
    const before = count()
    for (let round = 0; round < 20; round += 1) {
      const stop = new AbortController()
      const source = openLines(den.path('interact_in'), { signal: stop.signal })
      const other = openLines(den.path('interact_in'), { signal: stop.signal })
      const waiting = source.next()
      if (round % 2 === 0) stop.abort()
      else void source.return()
      stop.abort()
      await waiting
      await other.return()
    }
    expect(count()).toBeLessThanOrEqual(before + 2)
  })
})

test('frames end at blank lines', async () => {
  const source = openFrames(den.path('brain_in'), { signal: stopping.signal })
  den.script(String.raw`printf '{"a":1}\n' > brain_in; sleep 0.02; printf '\n{"b":2}\n\n' > brain_in`)
  expect(await next(source, 2)).toEqual(['{"a":1}', '{"b":2}'])
})

test('waiting costs next to nothing', async () => {
  const all = ['interact_in', 'brain_out', 'claw_out'].map((name) => openLines(den.path(name), { signal: stopping.signal }).next())
  await Bun.sleep(700)
  const before = cpuMs()
  await Bun.sleep(1500)
  expect(cpuMs() - before).toBeLessThanOrEqual(40)
  stopping.abort()
  await Promise.all(all)
})
