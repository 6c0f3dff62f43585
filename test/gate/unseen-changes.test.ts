/** What a person saved after the model read a file is not overwritten before the model has seen it. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const auto = ['--auto']
const again = ['--auto', '-c']
const old = 'one\ntwo\nthree\n'
const saved = 'one\ntwo, as a person has it\nthree\n'

function stage(path = 'a.txt', text = old) {
  const at = home()
  const file = join(at.workspace, path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
  const results = async (responses: readonly object[], args: readonly string[]) => {
    await turn(at, [...responses, { text: 'done' }], args)
    const lines = (await at.run(['memory', 'export'])).stdout.trim().split('\n')
    return lines
      .map((line): { role: string; content: string } => JSON.parse(line))
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content)
  }
  return {
    at,
    file,
    now: () => readFileSync(file, 'utf8'),
    save: (content: string) => writeFileSync(file, content),
    /** Runs a turn and returns the text of its last result. */
    last: async (responses: readonly object[], args: readonly string[] = again) => (await results(responses, args)).at(-1) ?? '',
    [Symbol.dispose]: () => at[Symbol.dispose](),
  }
}

const read = (path = 'a.txt', range = {}) => call('file_read', { path, ...range })
const write = (content: string, path = 'a.txt') => call('file_write', { path, content })

test('a write over what a person saved in between is refused once, with the difference, and then goes through', async () => {
  using on = stage()
  await on.last([read()], auto)
  on.save(saved)
  const refusal = await on.last([write('one\n2\nthree\n')])
  expect(on.now()).toBe(saved)
  expect(refusal).toStartWith('Failed: "a.txt" changed since this conversation last read or wrote it, so it was left as it is')
  expect(refusal).toContain('-two\n+two, as a person has it\n')
  expect(await on.last([write('one\n2, as a person has it\nthree\n')])).toContain('replaced a.txt')
  expect(on.now()).toBe('one\n2, as a person has it\nthree\n')
})

test('at the level full too', async () => {
  using on = stage()
  await on.last([read()], auto)
  on.save(saved)
  await on.last([write('x\n')], ['-c', '--autonomy', 'full'])
  expect(on.now()).toBe(saved)
})

test('what the first try did not show yet is shown by the second', async () => {
  using on = stage()
  await on.last([read()], auto)
  on.save(saved)
  await on.last([write('x\n')])
  on.save('another\n')
  expect(await on.last([write('x\n')])).toContain('-another')
  expect(on.now()).toBe('another\n')
})

test('a range that the model reads does not vouch for the lines that it did not read', async () => {
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at + 1}\n`)
  using on = stage('a.txt', lines.join(''))
  await on.last([read()], auto)
  on.save(lines.with(80, 'of a person\n').join(''))
  const refusal = await on.last([read('a.txt', { offset: 1, limit: 3 }), write('x\n')])
  expect(refusal).toContain('+of a person')
  expect(on.now()).toContain('of a person')
})

test('a range is enough to notice a change of another line', async () => {
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at + 1}\n`)
  using on = stage('a.txt', lines.join(''))
  await on.last([read('a.txt', { offset: 1, limit: 3 })], auto)
  on.save(lines.with(80, 'of a person\n').join(''))
  expect(await on.last([write('x\n')])).toContain('-of a person')
  expect(on.now()).toContain('of a person')
})

test('an edit keeps what a person saved, and does not vouch for it', async () => {
  using on = stage()
  await on.last([read()], auto)
  on.save(saved)
  expect(await on.last([call('file_edit', { path: 'a.txt', old: 'three', new: '3' })])).toContain('edited')
  const refusal = await on.last([write('one\ntwo\n3\n')])
  expect(refusal).toContain('+two, as a person has it')
  expect(on.now()).toBe('one\ntwo, as a person has it\n3\n')
})

test('the own writes, edits, and whole reads of the conversation go on without a refusal, also of one that was never read', async () => {
  using on = stage()
  const both = [write('one\n'), write('two\n'), call('file_edit', { path: 'a.txt', old: 'two', new: 'three' }), write('four\n', './a.txt')]
  expect(await on.last(both, auto)).toContain('replaced')
  on.save(saved)
  expect(await on.last([read(), write('five\n')])).toContain('replaced')
  expect(on.now()).toBe('five\n')
})

test('after an edit the difference begins from the edited text', async () => {
  using on = stage()
  await on.last([read(), call('file_edit', { path: 'a.txt', old: 'two', new: '2' })], auto)
  on.save('one\n2\nthree\nfour\n')
  const refusal = await on.last([write('x\n')])
  expect(refusal).toContain(' three\n+four')
  expect(refusal).not.toContain('-two')
})

test('a file is deleted only as the model knows it, alone or with its folder', async () => {
  using on = stage('sub/a.txt')
  await on.last([read('sub/a.txt')], auto)
  on.save(saved)
  const gone = (path: string, recursive: boolean) => on.last([call('file_delete', { path, recursive })], ['-c', '--autonomy', 'full'])
  expect(await gone('sub', true)).toContain('+two, as a person has it')
  expect(on.now()).toBe(saved)
  on.save(`${saved}more\n`)
  expect(await gone('sub/a.txt', false)).toContain('"sub/a.txt" changed since')
  expect(await gone('sub', true)).toContain('deleted sub')
  expect(existsSync(on.file)).toBe(false)
})

test('a file that a person deleted, or that another conversation read, is written as before', async () => {
  using on = stage()
  await on.last([read()], auto)
  rmSync(on.file)
  expect(await on.last([write('x\n')])).toContain('created')
  on.save(saved)
  expect(await on.last([write('y\n')], auto)).toContain('replaced')
})

test.if(needs('bwrap'))('what a command of the conversation changed is known to it', async () => {
  using on = stage()
  expect(await on.last([read(), call('shell', { command: "sed -i 's/two/2/' a.txt" }), write('x\n')], auto)).toContain('replaced')
})

test.if(needs('bwrap'))('a command does not vouch for what a person saved before it', async () => {
  using on = stage()
  await on.last([read()], auto)
  on.save(saved)
  const refusal = await on.last([call('shell', { command: "sed -i 's/one/1/' a.txt" }), write('x\n')])
  expect(refusal).toContain('+two, as a person has it')
})
