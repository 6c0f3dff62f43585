/** The conversation as a whole screen shows it. */

import { afterAll, describe, expect, test } from 'bun:test'
import { executable } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home } from '../support/turns.ts'
import { until } from '../support/until.ts'

const write = (path: string) => call('file_write', { path, content: 'written' })

describe('on a whole screen', () => {
  const tmux = Bun.which('tmux')
  const socket = `braidclaw-${process.pid}`
  const ask = (...words: string[]) => Bun.spawnSync([tmux ?? 'tmux', '-L', socket, ...words]).stdout.toString()
  const screen = () =>
    ask('capture-pane', '-p')
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
      .trimEnd()
  const usage = /\n\d+ tokens in, \d+ out/g
  const footer = /\nlocal\/mock · .*$/
  const shows = (text: string) => until(() => screen().replace(footer, '').replaceAll(usage, '').endsWith(text))
  afterAll(() => void (tmux && ask('kill-server')))

  test.if(needs('tmux'))('every line stands once and where it belongs', async () => {
    using at = home()
    const fixture = at.fixture([{ text: 'An answer in pieces.', chunks: 7 }, write('a.txt'), { text: 'It is {{last_tool_result}}' }])
    const variables = Object.entries({ ...at.env, BRAIDCLAW_MOCK_FIXTURE: fixture }).map(([name, value]) => `${name}=${value}`)
    ask('-f', '/dev/null', 'new-session', '-d', '-x', '240', '-y', '50', '-c', at.workspace, 'env', '-i', ...variables, executable, 'agent')
    await shows('\n>')
    ask('send-keys', 'hello there', 'Enter')
    await shows('pieces.\n>')
    ask('send-keys', 'write', 'Enter')
    await shows('[y/N/a]')
    ask('send-keys', 'y', 'Enter')
    await shows('bytes)\n>')
    ask('send-keys', '/policies', 'Enter')
    await shows('lists them)\n>')
    ask('send-keys', 'half a thou', 'C-c')
    await shows('half a thou\n>')
    expect(
      screen()
        .replace(footer, '\n(footer)')
        .replace(/\([0-9a-f]{12}\)/, '(plan)')
        .replaceAll(usage, '\n(tokens)'),
    ).toBe(
      [
        `BraidClaw 0.1.0 · local/mock · ${at.workspace} · /help`,
        '> hello there',
        'An answer in pieces.',
        '(tokens)',
        '> write',
        '',
        'new a.txt (+1 −0)',
        '@@ -0,0 +1 @@',
        '+written',
        '\\ No newline at end of file',
        `file_write: write ${at.workspace}/a.txt · medium risk · writes to workspace (? shows more)`,
        'Approve? [y/N/a] y',
        '· file_write a.txt · 1 line',
        'It is created a.txt (7 bytes)',
        '(tokens)',
        '> /policies',
        'no command "/policies"; did you mean "/policy"? (/help lists them)',
        '> half a thou',
        '>',
        '(footer)',
      ].join('\n'),
    )
  })
})
