import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentFolderFixture, createAgentFolderFixture } from './fixture.ts'

let den: AgentFolderFixture
beforeEach(() => {
  den = createAgentFolderFixture()
})
afterEach(() => den.remove())

const texts = () =>
  den
    .open()
    .pins.list()
    .pins.map(({ text }) => text)

test.each([
  ['nothing', ' \n', 'needs some text'],
  ['control characters', 'a\u001b[2Jb', 'control characters'],
  ['more than 4,096 bytes', 'é'.repeat(2049), 'at most 4096 bytes, this one has 4098'],
])('%s is refused', (_, text, why) => {
  expect(den.open().pins.add(text)).toEqual({ ok: false, message: expect.stringContaining(why) })
  expect(texts()).toEqual([])
})

test('what is pinned already is refused, with its number', () => {
  const { pins } = den.open()
  pins.add('one')
  pins.add('two')
  expect(pins.add(' two ')).toEqual({ ok: false, message: 'this is pinned already, as 2' })
})

test('all of them together stay small', () => {
  const { pins } = den.open()
  const added = Array.from({ length: 9 }, (_, at) => pins.add(`${at}${'x'.repeat(4000)}`).ok)
  expect(added).toEqual([...Array.from({ length: 8 }, () => true), false])
})

test('a number that is not there is refused', () => {
  const { pins } = den.open()
  pins.add('one')
  for (const number of [0, 2, -1, 1.5])
    expect(pins.remove(number)).toEqual({ ok: false, message: `pin ${number} does not exist; there are 1` })
})

test('they are kept in order, as lines a person can read, and numbered anew when one goes', () => {
  const { pins } = den.open()
  for (const text of ['one', 'two\nlines', 'three']) expect(pins.add(text).ok).toBe(true)
  expect(den.read('pins.jsonl').split('\n')[1]).toBe('{"at":"2026-05-12T12:00:00.000Z","text":"two\\nlines"}')
  expect(pins.remove(2)).toMatchObject({ ok: true, pin: { text: 'two\nlines' } })
  expect(pins.list().pins.map(({ number, text }) => [number, text])).toEqual([
    [1, 'one'],
    [2, 'three'],
  ])
})

test('lines written by hand count too; what is no pin is counted and stays', () => {
  den.write('pins.jsonl', '{"text":"by hand"}\nrubbish\n{"text":7}\n')
  const { pins } = den.open()
  expect(pins.list()).toEqual({ pins: [{ number: 1, text: 'by hand', at: '' }], unreadable: 2 })
  pins.add('two')
  pins.remove(1)
  expect(den.read('pins.jsonl')).toBe(`rubbish\n{"text":7}\n{"at":"2026-05-12T12:00:00.000Z","text":"two"}\n`)
})

test('a file that cannot be read is said, and never written over', () => {
  mkdirSync(join(den.folder, 'pins.jsonl'))
  const { pins } = den.open()
  expect(pins.list()).toMatchObject({ pins: [], trouble: expect.stringContaining('cannot be read') })
  expect(pins.add('x')).toMatchObject({ ok: false, message: expect.stringContaining('cannot be read') })
  expect(den.open().system()).toBe('You are a helpful personal assistant.')
})
