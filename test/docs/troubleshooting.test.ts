/** Holds docs/troubleshooting.md to the program: each quoted text is in its sources, and what a person meets first is on the page. */

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { home, scripted } from '../support/turns.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8')
const entries = page.split('\n').filter((line) => line.startsWith('- '))
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !/\.(test|fixture)\.ts$/.test(path))
  .map((path) => readFileSync(join(root, 'src', path), 'utf8'))

/** Returns the texts at the beginning of an entry: one, or several with "and" between them. */
function quoted(entry: string): string[] {
  const [head = ''] = /^- (?:`[^`]+`(?: and )?)+/.exec(entry) ?? []
  return [...head.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
}

const piecesOf = (text: string) =>
  text
    .split('…')
    .map((piece) => piece.replace(/^note: /, '').replace(/^[\s"':;,.]+|[\s"':;,.(]+$/g, ''))
    .filter((piece) => /[a-z]{2}/i.test(piece))

const inOneFile = (pieces: readonly string[]) => sources.some((source) => pieces.every((piece) => source.includes(piece)))
/** For what several files say together. */
const inSomeFiles = (pieces: readonly string[]) => pieces.every((piece) => sources.some((source) => source.includes(piece)))

test('each entry begins with a text, and says what to do about it', () => {
  expect(entries.length).toBeGreaterThan(50)
  for (const entry of entries) {
    const texts = quoted(entry)
    expect({ entry, count: texts.length }).not.toEqual({ entry, count: 0 })
    expect(entry.length - texts.join('').length).toBeGreaterThan(30)
  }
})

test.each(entries.flatMap(quoted).map((text) => [text]))('the program says: %s', (text) => {
  const pieces = piecesOf(text)
  expect(pieces.join('').length).toBeGreaterThan(6)
  expect(inOneFile(pieces) || inSomeFiles(pieces)).toBe(true)
})

test('a text that nothing says is noticed', () => {
  expect(inSomeFiles(piecesOf('the moon is … made of cheese'))).toBe(false)
})

/** Tells whether the line holds the pieces of an entry in their order. */
function isOnPage(line: string): boolean {
  return entries.flatMap(quoted).some((text) => {
    let from = 0
    return piecesOf(text).every((piece) => {
      const at = line.indexOf(piece, from)
      from = at + piece.length
      return at >= 0
    })
  })
}

describe('what a person meets is on the page', () => {
  const call = (name: string, args: object) => [{ tool_calls: [{ name, arguments: args }] }, { text: 'done' }]
  const situations: readonly (readonly [what: string, args: readonly string[], replies?: readonly object[]])[] = [
    ['a provider that there is not', ['agent', '-m', 'hi', '--model', 'nope/x']],
    ['no key', ['agent', '-m', 'hi', '--model', 'openai/gpt']],
    ['nobody to ask', ['agent', '-m', 'hi'], call('file_write', { path: 'b.txt', content: 'x' })],
    ['a path outside', ['agent', '-m', 'hi'], call('file_read', { path: '../../../etc/passwd' })],
    ['a file with secrets', ['agent', '-m', 'hi'], call('file_read', { path: '.env' })],
    ['an address of this machine', ['agent', '-m', 'hi'], call('http', { url: 'http://127.0.0.1:1/' })],
    ['a model in circles', ['agent', '-m', 'hi'], call('file_list', { path: '.' }).slice(0, 1)],
    ['no such folder', ['agent', '-C', '/nope', '-m', 'hi']],
    ['nothing to undo', ['undo']],
    ['no message', ['agent', '-m', '']],
    ['a misspelled flag', ['agent', '--mesage', 'hi']],
    ['a command of another program', ['chat']],
    ['no such agent', ['agent', '-m', 'hi', '--agent', 'nobody']],
    ['no service', ['service', 'start']],
  ]

  test.each(situations)('%s', async (_, args, replies = [{ text: 'done' }]) => {
    using at = home()
    at.file('.env', 'KEY=1\n')
    const { code, stderr } = await at.run(args, { ...scripted(at, replies), through: ['setsid', '-w'] })
    expect(code).not.toBe(0)
    expect({ stderr, isOnPage: stderr.split('\n').some(isOnPage) }).toMatchObject({ isOnPage: true })
  })
})
