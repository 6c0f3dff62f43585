import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../../../../test/support/cli.ts'

let home: Nest
beforeEach(() => {
  home = nest()
})
afterEach(() => home[Symbol.dispose]())

const memory = (...args: string[]) => home.run(['memory', ...args])
const agentFile = (...names: string[]) => join(home.home, '.braidclaw', 'agents', ...names)

test('an agent that is not there is named, with those that are', async () => {
  const { code, stderr } = await memory('pin', '--agent', 'ghost', 'x')
  expect([code, stderr]).toEqual([2, expect.stringContaining('no agent "ghost"')])
})

test('what cannot be pinned or unpinned is refused, and says why', async () => {
  expect(await memory('pin', ' ')).toMatchObject({ code: 1, stderr: 'error: a pin needs some text\n' })
  expect(await memory('unpin', '1')).toMatchObject({ code: 1, stderr: 'error: pin 1 does not exist; there are 0\n' })
  expect((await memory('pin')).code).toBe(2)
  expect((await memory('unpin', 'x')).code).toBe(2)
})

test('facts are pinned, listed and unpinned, in a file a person can read', async () => {
  expect(await memory('pins')).toMatchObject({ code: 0, stdout: '', stderr: 'nothing is pinned\n' })
  expect((await memory('pin', 'I live', 'in Lisbon')).stdout).toBe('pinned as 1: I live in Lisbon\n')
  await memory('pin', 'two\nlines')
  expect((await memory('pins')).stdout).toBe('1  I live in Lisbon\n2  two\n   lines\n')
  expect(readFileSync(agentFile('default', 'pins.jsonl'), 'utf8')).toContain('"text":"I live in Lisbon"')
  expect((await memory('unpin', '1')).stdout).toBe('unpinned: I live in Lisbon\n')
  expect(JSON.parse((await memory('pins', '--json')).stdout)).toEqual([{ number: 1, text: 'two\nlines', at: expect.any(String) }])
})

test('each agent has its own; PLANCKCLAW_DIR is the folder of the default one', async () => {
  mkdirSync(agentFile('coder'), { recursive: true })
  await memory('pin', '--agent', 'coder', 'tabs, not spaces')
  expect((await memory('pins')).stdout).toBe('')
  expect((await memory('pins', '--agent', 'coder')).stdout).toBe('1  tabs, not spaces\n')
  const elsewhere = { env: { PLANCKCLAW_DIR: join(home.dir, 'memory') } }
  await home.run(['memory', 'pin', 'elsewhere'], elsewhere)
  expect(readFileSync(join(home.dir, 'memory', 'pins.jsonl'), 'utf8')).toContain('elsewhere')
})

test('a key of the environment is not pinned, and no pin drives the terminal', async () => {
  const { stdout } = await home.run(['memory', 'pin', 'the key is hush-hush-9000'], { env: { MY_API_KEY: 'hush-hush-9000' } })
  expect(stdout).not.toContain('hush-hush-9000')
  writeFileSync(agentFile('default', 'pins.jsonl'), `${JSON.stringify({ text: 'a\u001b[2Jb' })}\nrubbish\n`)
  expect(await memory('pins')).toMatchObject({
    stdout: '1  a\\u001b[2Jb\n',
    stderr: expect.stringContaining('pins.jsonl has 1 unreadable line,'),
  })
})
