/** The conversation and its terminal: stopped and gone on with, closed, pasted into. */

import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { executable, type Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../support/sleeper.ts'
import { ctrlC, ctrlD, talk } from '../support/talk.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const echoing = (at: Nest) => scripted(at, [{ text: 'You said {{last_user_message}}' }]).env

const sleepSeconds = uniqueSeconds()

/** Without the codes that move the cursor. */
const plain = (screen: string) => Bun.stripANSI(screen).replaceAll('\r', '')

test('Ctrl-Z stops the conversation, and fg goes on with what was typed', async () => {
  using at = home()
  const { code } = await at.terminal(
    ['agent'],
    [
      ['> ', 'half\u001a'],
      ['> half', 'way\r'],
      ['You said halfway', ctrlD],
    ],
    { env: echoing(at), through: ['bash', '--norc', '-ic', '"$@"; fg', '-'] },
  )
  expect(code).toBe(0)
})

test.if(needs('bwrap')).each([
  ['at the prompt', [], 'answered'],
  ['while a command runs', [call('shell', { command: `sleep ${sleepSeconds}` })], 'cancelled'],
])('a terminal that is closed ends the conversation and leaves nothing behind: %s', async (_, calls, ending) => {
  using at = home()
  const state = { screen: '', typed: ['hello\r', 'y\r'] }
  const child = Bun.spawn([executable, 'agent'], {
    cwd: at.workspace,
    env: { ...at.env, ...scripted(at, [...calls, { text: 'You are heard.' }]).env },
    terminal: {
      data(pty, bytes) {
        state.screen += new TextDecoder().decode(bytes)
        if (state.screen.includes(state.typed.length === 2 ? '> ' : '[y/N/a]')) pty.write(state.typed.shift() ?? '')
      },
    },
  })
  await until(() => state.screen.includes('heard.') || sleeperOf(sleepSeconds) !== undefined)
  child.terminal?.close()
  await child.exited
  expect(child.signalCode).toBeNull()
  expect(readdirSync(at.workspace).filter((name) => name.startsWith('.'))).toEqual([])
  expect((await at.run(['run', 'list'])).stdout).toContain(ending)
})

test('a pasted text of several lines is one message, sent by Enter; Ctrl-C throws it away', async () => {
  using at = home()
  const paste = (text: string) => `\u001b[200~${text}\u001b[201~`
  const { code, stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', paste('rubbish\rand more')],
      ['and more', ctrlC],
      ['> ', paste('first\r  second\rthird')],
      ['third', ' and typed\r'],
      ['> ', ctrlD],
    ],
    { env: echoing(at) },
  )
  expect(code).toBe(0)
  expect(stdout).toContain('\u001b[?2004h')
  expect(plain(stdout)).toContain('You said first\nsecond\nthird and typed\n')
  expect(plain(stdout).split('You said')).toHaveLength(2)
  expect(stdout).toEndWith('\u001b[?1004l\u001b[?2004l')
})

test('a pasted yes with more after it is no yes', async () => {
  using at = home()
  const { stdout } = await talk(
    at,
    [call('file_write', { path: 'a.txt', content: 'written' }), { text: 'over' }],
    [
      ['> ', 'hi\r'],
      ['[y/N/a]', '\u001b[200~y\rrm -rf /\u001b[201~\r'],
      ['over', ctrlD],
    ],
  )
  expect(stdout).toContain('denied: file_write')
})

test('a path at the beginning is something to say, not a command', async () => {
  using at = home()
  const { stdout } = await at.terminal(
    ['agent'],
    [
      ['> ', '/etc/hosts is what?\r'],
      ['You said /etc/hosts is what?', ctrlD],
    ],
    { env: echoing(at) },
  )
  expect(stdout).not.toContain('no command')
})

const blur = '\u001b[O'
const ended = '\u001b]9;BraidClaw: the turn has ended\u0007\u0007'
const asks = '\u001b]9;BraidClaw: a question waits for you\u0007\u0007'
test.each([
  ['a terminal that is not known', {}, ['\u0007', '\u0007']],
  ['tmux, whose terminal may be another', { TERM_PROGRAM: 'ghostty', TMUX: '/tmp/tmux,1,0' }, ['\u0007', '\u0007']],
  ['a terminal within another', { TERM_PROGRAM: 'vscode' }, ['\u0007', '\u0007']],
  ['iTerm2', { TERM_PROGRAM: 'iTerm.app' }, [asks, ended]],
  ['kitty over ssh', { TERM: 'xterm-kitty' }, [asks, ended]],
])('who looks elsewhere is called by the bell, and by a notice where the terminal shows one: %s', async (_, env, calls) => {
  using at = home()
  const { code, raw } = await talk(
    at,
    [call('file_write', { path: 'a.txt', content: 'x' }), { text: 'It is \u001b]9;written\u0007.' }],
    [
      ['> ', `${blur}write\r`],
      ['Approve? [y/N/a]', 'y\r'],
      ['tokens in', '\u001b[I!\r'],
      ['usage: !', ctrlD],
    ],
    [],
    env,
  )
  expect(code).toBe(0)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect([...(raw.match(/(?:\u001b\]9;[^\u0007]*\u0007)?\u0007/g) ?? [])]).toEqual(calls)
})
