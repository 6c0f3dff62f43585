import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { createExchange, type Exchange } from './exchange.ts'
import { createFifoFixture, type FifoFixture } from './fixture.ts'
import { openPipe } from './open-pipe.ts'

let den: FifoFixture
const open = new Set<Exchange>()
beforeEach(async () => {
  den = await createFifoFixture()
})
afterEach(async () => {
  for (const exchange of open) await exchange.close()
  open.clear()
  den.remove()
})

function exchange(timeoutMs = 20_000, maxBytes?: number): Exchange {
  const made = createExchange({ requestPath: den.path('claw_in'), answerPath: den.path('claw_out'), timeoutMs, maxBytes })
  open.add(made)
  return made
}

/** Answers each line with `echo LINE`, as the protocol intends: a shell that reads and writes by redirection. */
const ECHO = String.raw`while :; do while IFS= read -r line; do printf 'echo %s\n\n' "$line" > claw_out; done < claw_in; done`
/** Does the same, but answers the first line only when a file called go exists. */
const SLOW = String.raw`exec < claw_in; read -r line; touch taken; while [ ! -e go ]; do sleep 0.01; done
printf 'late %s\n\n' "$line" > claw_out; while IFS= read -r line; do printf 'echo %s\n\n' "$line" > claw_out; done`

async function exists(name: string): Promise<void> {
  while (!(await Bun.file(den.path(name)).exists())) await Bun.sleep(5)
}

describe('no answer', () => {
  test('because nobody is there: the question is taken back, and not asked of whoever comes later', async () => {
    expect(await exchange(50).ask('one\n')).toEqual({ ok: false, why: 'unread' })
    den.script(ECHO)
    expect(await exchange().ask('two\n')).toEqual({ ok: true, answer: 'echo two' })
  })

  test('because the bridge dies with the question; the one that returns answers the next', async () => {
    const asking = exchange(300)
    const mortal = den.script('read -r line < claw_in; touch taken; kill -9 $$')
    expect(await asking.ask('one\n')).toEqual({ ok: false, why: 'timeout' })
    await mortal.done
    const next = asking.ask('two\n')
    den.script(ECHO)
    const answer = await next
    expect(answer).toEqual({ ok: true, answer: 'echo two' })
  })

  test('in time: one that comes late is not taken for that of the next question', async () => {
    const asking = exchange(400)
    den.script(SLOW)
    expect(await asking.ask('one\n')).toEqual({ ok: false, why: 'timeout' })
    const next = asking.ask('two\n')
    await Bun.sleep(20)
    await Bun.write(den.path('go'), '')
    expect(await next).toEqual({ ok: true, answer: 'echo two' })
    expect(await asking.ask('three\n')).toEqual({ ok: true, answer: 'echo three' })
  })

  test('to our predecessor’s question is ours, though its bridge lives on', async () => {
    den.script(SLOW)
    // Another process held the FIFOs open, asked, and was killed while the bridge was working.
    const held = [openPipe(den.path('claw_in')), openPipe(den.path('claw_out'))]
    held[0]?.write(Buffer.from('old\n'))
    await exists('taken')
    const next = exchange().ask('new\n')
    await Bun.write(den.path('go'), '')
    expect(await next).toEqual({ ok: true, answer: 'echo new' })
    for (const pipe of held) pipe.close()
  })

  test('longer than allowed', async () => {
    den.script(String.raw`while read -r line; do printf '%05000d\n\n' 0 > claw_out; done < claw_in`)
    expect(await exchange(20_000, 1000).ask('one\n')).toEqual({ ok: false, why: 'too_long' })
  })

  test('because we no longer want one: the question is withdrawn, at once', async () => {
    const stop = new AbortController()
    const asking = exchange()
    const first = asking.ask('one\n', stop.signal)
    const second = asking.ask('two\n', stop.signal)
    setTimeout(() => stop.abort(), 20)
    expect([await first, await second]).toEqual([
      { ok: false, why: 'cancelled' },
      { ok: false, why: 'cancelled' },
    ])
    expect(await asking.ask('x\n', stop.signal)).toEqual({ ok: false, why: 'cancelled' })
    const watching = openPipe(den.path('claw_in'))
    expect(watching.read()).toHaveLength(0)
    watching.close()
    den.script(ECHO)
    expect(await asking.ask('three\n')).toEqual({ ok: true, answer: 'echo three' })
  })

  test('after closing, which ends what is under way', async () => {
    const asking = exchange()
    const waiting = [asking.ask('one\n'), asking.ask('two\n')]
    await Bun.sleep(10)
    await asking.close()
    expect(await Promise.all(waiting)).toEqual(Array(2).fill({ ok: false, why: 'closed' }))
    expect(await asking.ask('three\n')).toEqual({ ok: false, why: 'closed' })
    await asking.close()
  })
})

describe('a bridge that ends with a question', () => {
  const MORTAL = 'read -r line < claw_in; touch taken; exit 1'
  const again = (times: number) => {
    const made = createExchange({ requestPath: den.path('claw_in'), answerPath: den.path('claw_out'), timeoutMs: 20_000, again: times })
    open.add(made)
    return made
  }
  const dies = async (asking: Exchange, againInMs = 1000): Promise<void> => {
    rmSync(den.path('taken'), { force: true })
    await den.script(MORTAL).done
    expect(await Bun.file(den.path('taken')).exists()).toBe(true)
    asking.bridge.ended(againInMs)
  }

  test('is not asked again where that might do something twice', async () => {
    const asking = again(0)
    const first = asking.ask('one\n')
    await dies(asking)
    expect(await first).toEqual({ ok: false, why: 'died' })
  })

  test('is asked again once, and then the others are', async () => {
    const asking = again(1)
    const [first, second] = [asking.ask('one\n'), asking.ask('two\n')]
    await dies(asking)
    asking.bridge.started()
    await dies(asking)
    expect(await first).toEqual({ ok: false, why: 'died' })
    asking.bridge.started()
    expect(asking.bridge.answered()).toBe(false)
    den.script(ECHO)
    expect(await second).toEqual({ ok: true, answer: 'echo two' })
    expect(asking.bridge.answered()).toBe(true)
  })

  test('has its question answered by the one that is started in its place', async () => {
    const asking = again(1)
    const first = asking.ask('one\n')
    await dies(asking)
    den.script(ECHO)
    asking.bridge.started()
    expect(await first).toEqual({ ok: true, answer: 'echo one' })
  })

  test('has answered when it wrote its answer first', async () => {
    const asking = again(0)
    const first = asking.ask('one\n')
    await den.script(String.raw`read -r line < claw_in; printf 'last %s\n\n' "$line" > claw_out`).done
    asking.bridge.ended(60_000)
    expect(await first).toEqual({ ok: true, answer: 'last one' })
  })

  test('before it took the question does not count', async () => {
    const asking = again(0)
    const first = asking.ask('one\n')
    await Bun.sleep(20)
    asking.bridge.ended(1000)
    await Bun.sleep(50)
    den.script(ECHO)
    expect(await first).toEqual({ ok: true, answer: 'echo one' })
  })

  test('and is away for long is waited for by nobody', async () => {
    const asking = again(1)
    const first = asking.ask('one\n')
    await dies(asking, 60_000)
    expect(await first).toEqual({ ok: false, why: 'down' })
    expect(await asking.ask('two\n')).toEqual({ ok: false, why: 'down' })
    asking.bridge.started()
    den.script(ECHO)
    expect(await asking.ask('three\n')).toEqual({ ok: true, answer: 'echo three' })
  })
})

describe('an answer', () => {
  test('comes whoever starts first', async () => {
    const asking = exchange()
    const early = asking.ask('early\n')
    await Bun.sleep(50)
    den.script(ECHO)
    expect(await early).toEqual({ ok: true, answer: 'echo early' })
    expect(await asking.ask('again\n')).toEqual({ ok: true, answer: 'echo again' })
  })

  test('is each question’s own when many are asked at once', async () => {
    den.script(ECHO)
    const asking = exchange()
    const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => asking.ask(`q${number}\n`)))
    expect(answers).toEqual(Array.from({ length: 20 }, (_, number) => ({ ok: true, answer: `echo q${number}` })))
  })

  test('may be larger than a pipe, and so may the question', async () => {
    den.script(
      String.raw`while IFS= read -r line; do printf '%s' "$line" | tr x y > got; { cat got; printf '\n\n'; } > claw_out; done < claw_in`,
    )
    expect(await exchange().ask(`${'x'.repeat(150_000)}\n`)).toEqual({ ok: true, answer: 'y'.repeat(150_000) })
  })

  test('comes from a bridge that was stopped in the middle of a question we gave up', async () => {
    const asking = exchange(400)
    const bridge = den.script(ECHO)
    expect((await asking.ask('first\n')).ok).toBe(true)
    const stuck = asking.ask(`${'a'.repeat(60_000)}\n`)
    await Bun.sleep(8)
    bridge.stop()
    await stuck
    bridge.go()
    expect(await asking.ask('second\n')).toEqual({ ok: true, answer: 'echo second' })
  })
})

test('bridges that are killed and started again, over and over, never give the wrong answer', async () => {
  const asking = exchange(250)
  let answered = 0
  for (let round = 0; round < 12; round += 1) {
    const bridge = den.script(ECHO)
    const killed = Bun.sleep((round * 7) % 40).then(() => bridge.kill())
    for (let number = 0; number < 4; number += 1) {
      const question = `round ${round} number ${number} ${'.'.repeat(round * 500)}`
      const found = await asking.ask(`${question}\n`)
      if (!found.ok) break
      expect(`echo ${question}`).toEndWith(found.answer.replace(/^echo /, ''))
      answered += 1
    }
    await killed
  }
  expect(answered).toBeGreaterThan(0)
  den.script(ECHO)
  expect(await exchange().ask('last\n')).toEqual({ ok: true, answer: 'echo last' })
})
