import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TelegramMessage } from './inbound.ts'
import { openLedger } from './ledger.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-ledger-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const lines: string[] = []
const open = () => openLedger(join(folder, 'telegram/bot.json'), (_, event) => void lines.push(event))

function message(updateId: number): TelegramMessage {
  return { updateId, messageId: updateId, chat: '5', person: '5', text: `text ${updateId}`, photos: [], isGroup: false, isForwarded: false }
}

test('what was taken is on disk with the offset before Telegram may forget it, whatever was received in between', () => {
  const ledger = open()
  const during: unknown[] = []
  ledger.take(12, [message(10), message(11)], ({ updateId }) => {
    if (updateId === 10) ledger.end(10)
    during.push(open().offset())
  })
  expect(during).toEqual([undefined, undefined])
  const next = open()
  expect([next.offset(), next.open()]).toEqual([12, [{ message: message(11), isBegun: false }]])
  expect(statSync(join(folder, 'telegram/bot.json')).mode & 0o777).toBe(0o600)
  expect(statSync(join(folder, 'telegram')).mode & 0o777).toBe(0o700)
})

test('a begun message is known as begun, an ended one is forgotten, and one that is open is not taken twice', () => {
  const ledger = open()
  ledger.take(12, [message(10), message(11)], () => {})
  ledger.begin(10)
  ledger.end(11)
  const next = open()
  expect(next.open()).toEqual([{ message: message(10), isBegun: true }])
  const received: number[] = []
  next.take(13, [message(10), message(12)], ({ updateId }) => void received.push(updateId))
  expect(received).toEqual([12])
})

test('the number of the conversation in a place is kept', () => {
  const ledger = open()
  expect(ledger.topic('5')).toBeUndefined()
  ledger.newTopic('5')
  ledger.newTopic('5')
  expect([open().topic('5'), open().topic('6')]).toEqual([3, undefined])
})

test.each(['', '{', '{"v":2,"open":[]}', '{"v":1,"open":[{"message":{"updateId":1}}]}', '[]'])(
  'a file that is %p is not believed',
  (text) => {
    open().newTopic('5')
    writeFileSync(join(folder, 'telegram/bot.json'), text)
    lines.length = 0
    expect([open().offset(), open().open()]).toEqual([undefined, []])
    expect(lines[0]).toBe('telegram messages of an earlier start are not known')
  },
)

test('what cannot be written is logged, and the messages are still received', () => {
  writeFileSync(join(folder, 'telegram'), 'a file in place of the folder')
  lines.length = 0
  const received: number[] = []
  const ledger = open()
  ledger.take(2, [message(1)], ({ updateId }) => void received.push(updateId))
  expect([received, ledger.offset(), lines.at(-1)]).toEqual([[1], 2, 'telegram messages not kept'])
  expect(readFileSync(join(folder, 'telegram'), 'utf8')).toBe('a file in place of the folder')
})

test('a chat that has moved is known by its first id, also after a second move', () => {
  const ledger = open()
  ledger.move('-5', '-1005')
  ledger.move('-1005', '-2005')
  ledger.move('-6', '-1005')
  ledger.move('-7', '-7')
  expect(['-5', '-1005', '-2005', '-7'].map(open().origin)).toEqual(['-5', '-5', '-5', '-7'])
})
