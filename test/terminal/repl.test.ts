/** The conversation in a terminal: what a person sees, types and keeps on a pseudo-terminal. */

import { expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { ctrlC, ctrlD, talk, up } from '../support/talk.ts'
import { asksFirst, call, home } from '../support/turns.ts'

const history = (at: Nest) => join(at.home, '.braidclaw/history')
const write = (path: string) => call('file_write', { path, content: 'written' })

/** Without the codes that move the cursor. */
const plain = (screen: string) => Bun.stripANSI(screen).replaceAll('\r', '')

test('a greeting, a streamed answer, and Ctrl-D leaves', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ text: 'Hello in eleven little pieces.', chunks: 11 }],
    [
      ['> ', 'hi\r'],
      ['pieces.', ''],
      ['> ', ctrlD],
    ],
  )
  expect(code).toBe(0)
  expect(stdout).toContain(`local/mock · ${at.workspace} · /help`)
  expect(plain(stdout)).toMatch(/hi\n(?:> \n)?Hello in eleven little pieces\.\n\d+ tokens in, \d+ out\n/)
})

test('/exit leaves too, and every slash command answers', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ text: 'A talking aardvark.' }],
    [
      ['> ', 'who are you?\r'],
      ['aardvark.\r\n', ''],
      ['> ', '/help\r'],
      ['(the old one', '/tools\r'],
      ['ask_user', '/policy\r'],
      ['commands:', '/memory aardvark\r'],
      ['assistant: ', '/model\r'],
      ['local/mock', '/polcy\r'],
      ['did you mean "/policy"?', '/memory\r'],
      ['usage: /memory QUERY', '/exit\r'],
    ],
  )
  expect(code).toBe(0)
  for (const word of [
    '/clear',
    'y allows once, a from',
    'file_read',
    'autonomy:   supervised',
    `workspace:  ${at.workspace}`,
    'A talking aardvark.',
  ])
    expect(stdout).toContain(word)
})

test('the conversation goes on from turn to turn, /clear begins another, --continue finds the latest', async () => {
  using at = home()
  await talk(
    at,
    [{ text: 'one' }, { text: 'two' }],
    [
      ['> ', 'first\r'],
      ['one\r\n', 'second\r'],
      ['two\r\n', '/clear\r'],
      ['a new conversation begins', 'third\r'],
      ['two\r\n', ctrlD],
    ],
  )
  const list = JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)
  expect(list.map(({ title, turns }: { title: string; turns: number }) => [title, turns])).toEqual([
    ['third', 1],
    ['first', 2],
  ])
  await talk(
    at,
    [{ text: 'three' }],
    [
      ['> ', 'fourth\r'],
      ['three\r\n', ctrlD],
    ],
    ['--continue'],
  )
  const shown = (await at.run(['memory', 'show', 'last'])).stdout
  expect(shown).toContain('third')
  expect(shown).toContain('fourth')
})

test('/model goes on with another model in the same conversation; a wrong one changes nothing', async () => {
  using at = nest()
  const fixture = at.fixture([{ text: 'said' }])
  const mock = (name: string, file: string) => `[providers.models.${name}]\nkind = "mock"\nmodel = "mock"\nfixture = "${file}"\n`
  at.config(
    `workspace_dir = "~/braidclaw-workspace"\n${mock('local', fixture)}${mock('second', fixture)}${mock('broken', '/nowhere.json')}`,
  )
  const { code, stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', 'first\r'],
      ['said\r\n', '/model second/other\r'],
      ['second/other\r\n', 'again\r'],
      ['said\r\n', '/model broken/x\r'],
      ['/nowhere.json" cannot be read', '/model\r'],
      ['second/other\r\n', ctrlD],
    ],
  )
  expect(code).toBe(0)
  const turns = JSON.parse((await at.run(['memory', 'show', 'last', '--json'])).stdout)
  expect(turns.map(({ role, provider }: { role: string; provider: string }) => `${role} ${provider}`)).toEqual([
    'user local',
    'assistant local',
    'user second',
    'assistant second',
  ])
  expect(stdout).not.toContain('    at ')
})

test('Ctrl-C cancels what runs, and the conversation goes on', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ tool_calls: [{ name: 'time', arguments: {} }] }, { text: 'never', delay_ms: 60_000 }, { text: 'afterwards' }],
    [
      ['> ', 'slow\r'],
      ['· time', ''],
      ['thinking 0 s', ctrlC],
      ['cancelled', 'and now?\r'],
      ['afterwards', ctrlD],
    ],
  )
  expect(code).toBe(0)
  expect(stdout).not.toContain('never')
})

test('Ctrl-C ends a running command', async () => {
  using at = home('', asksFirst)
  const { code } = await talk(
    at,
    [{ tool_calls: [{ name: 'shell', arguments: { command: 'echo begun > begun; sleep 60' } }] }, { text: 'afterwards' }],
    [
      ['> ', 'slow\r'],
      ['[y/N/a]', 'y\r'],
      ['\n', ctrlC],
      ['cancelled', ctrlD],
    ],
  )
  expect(code).toBe(0)
  expect(readFileSync(join(at.home, '.braidclaw/tool_receipts.log'), 'utf8')).toMatch(/"status":"(failed|denied)"/)
})

test('Ctrl-C on a line throws the line away, on an empty one it says how to leave, twice it leaves', async () => {
  using at = home()
  const { code, stdout } = await talk(
    at,
    [{ text: 'You said {{last_user_message}}' }],
    [
      ['> ', `rubbish${ctrlC}`],
      ['> ', 'sense\r'],
      ['You said ', ''],
      ['> ', ctrlC],
      ['Ctrl-D or /exit leaves', ctrlC],
    ],
  )
  expect(code).toBe(0)
  expect(stdout).toContain('You said sense')
})

test('the history is kept, private, without secrets, without answers, without lines that begin with a space', async () => {
  using at = home()
  const env = { OPENAI_API_KEY: 'sk-planted-secret-000111222' }
  const { code } = await talk(
    at,
    [write('a.txt'), { text: 'over' }],
    [
      ['> ', 'first words\r'],
      ['[y/N/a]', 'y\r'],
      ['over\r\n', ' not for the record\r'],
      ['over\r\n', 'the key is sk-planted-secret-000111222\r'],
      ['over\r\n', `${up}${up}${up}`],
      ['first words', ctrlC],
      ['> ', ctrlD],
    ],
    [],
    env,
  )
  expect(code).toBe(0)
  const kept = readFileSync(history(at), 'utf8')
  expect(kept).toStartWith('first words\nthe key is ')
  for (const word of ['planted', 'record', '\ny\n']) expect(kept).not.toContain(word)
  expect(statSync(history(at)).mode & 0o777).toBe(0o600)

  const again = await talk(
    at,
    [{ text: 'You said {{last_user_message}}' }],
    [
      ['> ', `${up}${up}\r`],
      ['You said', ctrlD],
    ],
  )
  expect(again.stdout).toContain('You said first words')
})

test('what a model says cannot drive the terminal', async () => {
  using at = home()
  const { stdout } = await talk(
    at,
    [{ text: 'before\u001b[2J\u001b]0;title\u0007after' }],
    [
      ['> ', 'hi\r'],
      ['after', ctrlD],
    ],
  )
  expect(stdout).not.toContain('\u001b[2J')
  expect(stdout).not.toContain('\u001b]0;')
  expect(stdout).toContain('before\\u001b[2J')
})

test.each([
  ['with NO_COLOR no colour is used', { NO_COLOR: '1' }, false],
  ['without it tool lines are dim', {}, true],
])('%s', async (_, env, dim) => {
  using at = home()
  const { stdout } = await talk(
    at,
    [{ tool_calls: [{ name: 'time', arguments: {} }] }, { text: 'over' }],
    [
      ['> ', 'hi\r'],
      ['over', ctrlD],
    ],
    [],
    env,
  )
  expect(stdout.includes('\u001b[2m')).toBe(dim)
  expect(stdout).toContain('· time · 3 lines')
})

test.each([
  ['TERM=dumb', [], { TERM: 'dumb' }],
  ['--plain', ['--plain'], {}],
])('with %s it prints lines and no escapes; Ctrl-C, Ctrl-D, questions and the history are as usual', async (_, args, env) => {
  using at = home()
  const { code, raw } = await talk(
    at,
    [{ text: 'Hello.' }, write('a.txt'), { text: 'Done.' }],
    [
      ['> ', 'first\n'],
      ['Hello.\r\n', ''],
      ['> ', 'second\n'],
      ['[y/N/a]', 'y\n'],
      ['Done.\r\n', ''],
      ['> ', `half${ctrlC}`],
      ['(Ctrl-D or /exit leaves)', ''],
      ['> ', ctrlD],
    ],
    args,
    { ...env, NO_COLOR: '1' },
  )
  expect(code).toBe(0)
  expect(raw).not.toContain('\u001b')
  expect(raw).toContain('Approve? [y/N/a] y\nDone.')
  expect(readFileSync(history(at), 'utf8')).toBe('first\nsecond\n')
})

test('a message of several lines comes back from the history with its lines, also in another conversation', async () => {
  using at = home()
  const first = await talk(
    at,
    [{ text: 'You said {{last_user_message}}' }],
    [
      ['> ', 'one\u001b\rtwo\r'],
      ['You said ', ctrlD],
    ],
  )
  expect(first.code).toBe(0)
  const { stdout } = await talk(
    at,
    [{ text: 'You said {{last_user_message}}' }],
    [
      ['> ', `${up}!\r`],
      ['You said ', ctrlD],
    ],
  )
  expect(plain(stdout)).toContain('You said one\ntwo!\n')
  expect(readFileSync(history(at), 'utf8')).toBe('one\u2028two\none\u2028two!\n')
})

test('what is typed before a question is not its answer, and is still there after it', async () => {
  using at = home('', asksFirst)
  const { code, stdout } = await talk(
    at,
    [{ ...call('shell', { command: 'touch made' }), delay_ms: 3000 }, { text: 'over' }],
    [
      ['> ', 'begin\r'],
      ['> begin', 'yes, '],
      ['yes, ', ''],
      ['[y/N/a] ', 'n\r'],
      ['yes, ', `\u0015${ctrlD}`],
    ],
  )
  expect(code).toBe(0)
  expect(Bun.stripANSI(stdout)).toContain('[y/N/a] n')
})

test('JSON is refused in a conversation, with the way out', async () => {
  using at = home()
  const { code, stdout } = await at.terminal(['agent', '--json'], [])
  expect(code).toBe(2)
  expect(stdout).toContain('pass a message with -m')
})
