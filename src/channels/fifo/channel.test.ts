import { expect, test } from 'bun:test'
import type { Line } from '../../kit/lines.ts'
import { fifoMessages } from './channel.ts'

type Written = Awaited<ReturnType<Parameters<typeof fifoMessages>[0]['write']>>

async function hear(lines: readonly Line[], result: Written = { ok: true }) {
  const [log, written]: [string[], string[]] = [[], []]
  const messages = fifoMessages({
    lines: (async function* () {
      yield* lines
    })(),
    write: async (line) => {
      written.push(line)
      return result
    },
    log: (level, event, fields) => void log.push(`${level}: ${event} ${fields?.why ?? ''}`),
  })
  return { heard: await Array.fromAsync(messages), log, written }
}

const line = (text: string): Line => ({ ok: true, text })

test('what is no message is said with its beginning; an empty line is nothing', async () => {
  const { heard, log, written } = await hear([line(`no tab ${'x'.repeat(100)}`), line('\tno channel'), line('c\t '), line(' ')])
  expect([heard, written]).toEqual([[], []])
  expect(log).toEqual([
    `warn: message ignored "no tab ${'x'.repeat(53)}" has no tab; write channel, tab, text`,
    'warn: message ignored "\\tno channel" has no channel; write channel, tab, text',
    'warn: message ignored "c\\t " has no text; write channel, tab, text',
    'debug: empty line ',
  ])
})

test('a message that is too long is answered when its channel is known, and said in any case', async () => {
  const error = 'longer than 9 bytes'
  const { heard, log, written } = await hear([
    { ok: false, text: 'me\tlong', error },
    { ok: false, text: 'nobody', error },
  ])
  expect([heard.length, log.length]).toEqual([0, 2])
  expect(written).toEqual(['me\t[not answered: the message is longer than 9 bytes]\n'])
})

test('an answer goes back to its channel on one line, and one that nobody takes is said', async () => {
  const { heard, written, log } = await hear([line('me\ttwo\\nlines')], { ok: false, message: 'nobody reads' })
  expect(heard[0]).toMatchObject({ channel: 'me', text: 'two\nlines', from: 'fifo' })
  await heard[0]?.answer('one\n\ttwo\\three\n')
  expect(written).toEqual(['me\tone\\n\\ttwo\\\\three\n'])
  expect(log).toEqual(['warn: answer not delivered nobody reads'])
})
