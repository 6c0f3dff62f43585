/** The log: every event by its name, human or JSON, and never a secret, there or anywhere. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, home, turn } from '../support/turns.ts'

describe('the log', () => {
  test('BRAIDCLAW_LOG=json: every event by its name, every line of stderr JSON', async () => {
    using at = home()
    const env = { BRAIDCLAW_LOG: 'json' }
    const runs = [
      await turn(at, [call('time', {}), { text: 'ok' }], [], { env }),
      await turn(at, [call('file_read', { path: '/etc/passwd' }), { text: 'ok' }], [], { env }),
      await turn(at, [call('file_read', { path: 'missing' }), { text: 'ok' }], [], { env }),
      await turn(at, [{ error: 'auth' }], [], { env }),
      await at.run(['agent', '--resume', 'nope', '-m', 'x'], { env }),
      await at.run(['estop'], { env }),
      await at.run(['estop', '--clear'], { env }),
    ]
    const screen = await at.terminal(['agent', '-m', 'go'], [['[y/N', 'y\r']], {
      env: { ...env, BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('file_write', { path: 'x', content: 'x' }), { text: 'ok' }]) },
    })
    const lines = runs
      .flatMap(({ stderr }) => stderr.trimEnd().split('\n'))
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    for (const { ts, level, event } of lines) expect([typeof ts, typeof level, typeof event]).toEqual(['string', 'string', 'string'])
    const events = new Set(lines.map(({ event }) => event))
    for (const name of [
      'startup',
      'config path',
      'workspace path',
      'provider selected',
      'channel started',
      'conversation started',
      'tool requested',
      'tool denied',
      'tool completed',
      'tool failed',
      'receipt written',
      'memory persisted',
      'estop triggered',
    ])
      expect(events).toContain(name)
    expect(screen.stdout).toContain('"event":"tool approved"')
  })

  test('for people: quiet by default, wordy on demand, silent on demand', async () => {
    using at = home()
    expect((await turn(at, [{ text: 'ok' }])).stderr).toBe('')
    expect((await turn(at, [{ text: 'ok' }], [], { env: { BRAIDCLAW_LOG: 'info' } })).stderr).toContain(
      'info: conversation started conversation=',
    )
    at.config('[log]\nlevel = "info"\n')
    expect((await turn(at, [{ text: 'ok' }])).stderr).toContain('info: startup')
    expect((await turn(at, [{ text: 'ok' }], [], { env: { BRAIDCLAW_LOG: 'off' } })).stderr).toBe('')
  })
})

test('secrets are in no stream and no file, in none of four spellings', async () => {
  const secret = 'sk-plan"ted/secret+0123 456789&äö\\'
  const spellings = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), Buffer.from(secret).toString('base64')]
  using at = home()
  const env = { OPENAI_API_KEY: secret }
  at.file('leak.txt', `raw ${spellings.join(' and ')} end`)
  const streams: string[] = []
  const note = ({ stdout, stderr }: { stdout: string; stderr: string }) => void streams.push(stdout, stderr)
  const everything = { text: `I say ${secret} and {{last_tool_result}}`, chunks: 40 }
  for (const args of [['--json'], ['--output-format', 'stream-json'], []]) {
    note(await turn(at, [call('file_read', { path: 'leak.txt' }), everything], args, { env, stdin: `here: ${secret}` }))
    note(await turn(at, [call('time', { [secret]: secret }), everything], args, { env: { ...env, BRAIDCLAW_LOG: 'json:debug' } }))
    note(await turn(at, [call('shell', { command: `echo '${secret}'; env` }), everything], [...args, '--approve-all-medium'], { env }))
  }
  for (const args of [
    ['config', 'show', '--origin'],
    ['memory', 'export'],
    ['memory', 'search', 'raw'],
    ['memory', 'show', 'last'],
    ['receipt', 'list', '--json'],
    ['provider', 'list'],
    ['doctor'],
    ['init'],
    ['tool', 'run', 'file_read', '--json', '{"path":"leak.txt"}'],
    ['provider', 'test', secret],
    ['agent', '--resume', secret, '-m', 'x'],
    ['estop', '--reason', secret],
  ])
    note(await at.run(args, { env }))
  const files = [...new Bun.Glob('**/*').scanSync({ cwd: join(at.home, '.braidclaw'), dot: true, absolute: true })]
  expect(files.length).toBeGreaterThan(4)
  for (const [index, spelling] of spellings.entries()) {
    expect([index, streams.filter((text) => text.includes(spelling))]).toEqual([index, []])
    expect([index, files.filter((file) => readFileSync(file).includes(spelling))]).toEqual([index, []])
  }
  expect(streams.join('')).toContain('OPENAI_API_KEY')
})
