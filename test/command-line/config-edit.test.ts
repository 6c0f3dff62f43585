/** `config get | set | unset | edit`: what they refuse, that comments and order stay, and that two writers lose nothing. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'

const file = (at: Nest) => join(at.home, '.braidclaw/config.toml')
const text = (at: Nest) => readFileSync(file(at), 'utf8')
const mine = `# mine
default_provider = "far" # why

[providers.models.far]
kind = "mock"   # scripted

# what it may cost
[limits]
# max_tool_rounds = 25
max_run_usd = 1 # a dollar
`

describe('set refuses, and the file stays as it is', () => {
  test.each([
    [['limits.max_run_uds', '1'], 'did you mean "limits.max_run_usd"'],
    [['max_run_usd', '1'], 'did you mean "limits.max_run_usd"'],
    [['limits', '1'], 'limits is a section; in it there can be: '],
    [['limits.max_run_usd', 'much'], 'must be a number'],
    [['limits.max_tool_rounds', '-1'], 'out of range'],
    [['security.autonomy', 'ful'], 'did you mean "full"'],
    [['proof_of_done_model', 'perhaps'], 'must be true or false'],
    [
      ['providers.models.far.api_key', 'sk-planted-0123456789'],
      'secrets do not belong in the config file; store a key with: braidclaw login',
    ],
    [['providers.models.near.api_key_env', 'sk-planted-0123456789'], 'braidclaw login'],
    [['default_agent', 'sk-of-the-environment-1'], 'secrets do not belong'],
    [['limits.max_run_usd'], 'missing'],
    [['limits.max_run_usd', '1', 'log.level'], 'a value is missing after "log.level"'],
  ])('%j: %s', async (words, says) => {
    using at = nest()
    at.config(mine)
    const { code, stdout, stderr } = await at.run(['config', 'set', '--', ...words], { env: { OPENAI_API_KEY: 'sk-of-the-environment-1' } })
    expect([code, stdout, text(at)]).toEqual([2, '', mine])
    expect(stderr).toContain(says)
    expect(stderr).not.toContain('planted')
  })

  test.each([
    [['default_provider', 'fra'], 'did you mean "far"'],
    [['providers.models.near.kind', 'openai-compatible'], 'base_url'],
  ])('what the whole file would not bear: %j: %s', async (words, says) => {
    using at = nest()
    at.config(mine)
    const { code, stderr } = await at.run(['config', 'set', ...words])
    expect([code, text(at)]).toEqual([1, mine])
    expect(stderr).toContain(says)
    expect(stderr).toContain('stays as it is')
  })

  test.each(['default_provider = 3\n', '[limits\n', 'limits = { max_run_usd = 1, tool_timeout_s = 5 }\n'])(
    'a broken file, or an inline table: %j',
    async (before) => {
      using at = nest()
      at.config(before)
      const { code, stderr } = await at.run(['config', 'set', 'limits.max_tool_rounds', '3'])
      expect([code, text(at)]).toEqual([1, before])
      expect(stderr).toContain('braidclaw config edit')
      expect((await at.run(['config', 'unset', 'limits.max_run_usd'])).code).toBe(1)
      expect(text(at)).toBe(before)
    },
  )
})

test('set replaces a value, adds a line below its commented-out one, and a section at the end; all else stays', async () => {
  using at = nest()
  at.config(mine)
  const words = ['limits.max_run_usd', '0.5', 'limits.max_tool_rounds', '7', 'log.level', 'info', 'security.forbidden_commands', 'rm,dd']
  expect(await at.run(['config', 'set', ...words])).toEqual({
    code: 0,
    stderr: '',
    stdout: 'limits.max_run_usd = 0.5\nlimits.max_tool_rounds = 7\nlog.level = "info"\nsecurity.forbidden_commands = ["rm", "dd"]\n',
  })
  expect(text(at)).toBe(
    `${mine.replace('max_run_usd = 1', 'max_run_usd = 0.5').replace('# max_tool_rounds = 25\n', '# max_tool_rounds = 25\nmax_tool_rounds = 7\n')}
[log]
level = "info"

[security]
forbidden_commands = ["rm", "dd"]
`,
  )
  expect((await at.run(['config', 'get', 'security.forbidden_commands'])).stdout).toBe('["rm","dd"]\n')
  expect((await at.run(['config', 'get', 'log.level'])).stdout).toBe('info\n')
  const unset = ['log.level', 'limits.max_tool_rounds', 'default_provider']
  expect((await at.run(['config', 'unset', ...unset, '--json'])).stdout).toBe(
    `${JSON.stringify({ file: file(at), changed: true, values: { 'log.level': null, 'limits.max_tool_rounds': null, default_provider: null } })}\n`,
  )
  expect(text(at)).toStartWith('# mine\n# why\n\n[providers')
})

test('a whole provider is set at once, also without a file; what a variable says counts more, and is named', async () => {
  using at = nest()
  const far = (leaf: string, value: string) => [`providers.models.far.${leaf}`, value]
  const words = [...far('kind', 'openai-compatible'), ...far('base_url', 'http://127.0.0.1:9/v1'), ...far('model', 'm$$1')]
  const { code, stdout, stderr } = await at.run(['config', 'set', ...words, 'default_model', 'mine', '--json'], {
    env: { BRAIDCLAW_MODEL: 'other' },
  })
  expect([code, JSON.parse(stdout).values['providers.models.far.kind']]).toEqual([0, 'openai-compatible'])
  expect(stderr).toBe('')
  expect(text(at)).toBe(
    'default_model = "mine"\n[providers.models.far]\nmodel = "m$$1"\nbase_url = "http://127.0.0.1:9/v1"\nkind = "openai-compatible"\n',
  )
  const again = await at.run(['config', 'set', 'default_model', 'mine'], { env: { BRAIDCLAW_MODEL: 'other' } })
  expect(again.stderr).toBe('note: BRAIDCLAW_MODEL sets default_model too and counts more\n')
  expect((await at.run(['config', 'get', 'default_agent'])).code).toBe(1)
  expect((await at.run(['config', 'get', 'default_agnt'])).stderr).toContain('did you mean "default_agent"')
})

test('six processes that change the file at once lose nothing', async () => {
  using at = nest()
  at.config(mine)
  const all = [
    ['limits.max_run_usd', '2'],
    ['limits.max_response_bytes', '20000'],
    ['log.level', 'info'],
    ['proof_of_done', 'off'],
    ['default_agent', 'coder'],
    ['hooks.timeout_s', '11'],
  ]
  const results = await Promise.all(all.map((pair) => at.run(['config', 'set', ...pair])))
  expect(results.map(({ code, stderr }) => [code, stderr])).toEqual(all.map(() => [0, '']))
  for (const [key = '', value] of all) expect((await at.run(['config', 'get', key])).stdout).toBe(`${value}\n`)
})

test('the shell completes keys, those of configured providers too', async () => {
  using at = nest()
  at.config(mine)
  expect((await at.run(['__complete', 'bash', 'config', 'set', 'limits.max_run_u'])).stdout).toBe('limits.max_run_usd\n')
  expect((await at.run(['__complete', 'bash', 'config', 'set', 'providers.models.far.fix'])).stdout).toBe('providers.models.far.fixture\n')
})

describe('edit', () => {
  /** An editor that runs these lines of sh with the file as $1. */
  function editor(at: Nest, script: string): { EDITOR: string } {
    const path = join(at.dir, 'editor')
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
    return { EDITOR: path }
  }
  const left = (at: Nest) => readdirSync(join(at.home, '.braidclaw')).filter((name) => name.includes('edit'))

  test('an editor that fails, or is not there, changes nothing and leaves nothing', async () => {
    using at = nest()
    at.config(mine)
    for (const env of [editor(at, 'echo broken > "$1"; exit 3'), { EDITOR: '/nowhere/vi' }]) {
      const { code, stdout } = await at.terminal(['config', 'edit'], [], { env })
      expect([code, stdout.includes('so nothing was changed'), text(at), left(at)]).toEqual([1, true, mine, []])
    }
    expect((await at.run(['config', 'edit'], { through: ['setsid', '-w'] })).code).toBe(2)
  })

  test('a broken text is never written: it says what is wrong and opens the editor again, or keeps the text aside', async () => {
    using at = nest()
    at.config(mine)
    const env = editor(at, 'grep -q "uds" "$1" && sed -i s/uds/usd/ "$1" || sed -i "s/max_run_usd = 1/max_run_uds = 2/" "$1"')
    const stopped = await at.terminal(['config', 'edit'], [['Edit again?', 'n\r']], { env })
    expect([stopped.code, text(at), left(at).length]).toEqual([1, mine, 1])
    expect(stopped.stdout).toContain('did you mean "max_run_usd"')
    const { code } = await at.terminal(['config', 'edit'], [['Edit again?', '\r']], { env })
    expect([code, text(at)]).toEqual([0, mine.replace('max_run_usd = 1', 'max_run_usd = 2')])
  })

  test('a change by another program meanwhile is not overwritten', async () => {
    using at = nest()
    at.config(mine)
    const env = editor(at, `echo "# theirs" >> ${file(at)}; echo "# ours" >> "$1"`)
    const { code, stdout } = await at.terminal(['config', 'edit'], [], { env })
    expect([code, text(at), left(at).length]).toEqual([1, `${mine}# theirs\n`, 1])
    expect(stdout).toContain('another program changed it meanwhile')
  })

  test('a file that is broken already can be mended, and a new one begins with every setting', async () => {
    using at = nest()
    const fresh = await at.terminal(['config', 'edit'], [], { env: editor(at, 'true') })
    expect([fresh.code, existsSync(file(at))]).toEqual([0, false])
    at.config('default_provider = 3\n')
    const { code } = await at.terminal(['config', 'edit'], [], { env: editor(at, 'echo "# empty" > "$1"') })
    expect([code, text(at), left(at)]).toEqual([0, '# empty\n', []])
  })
})
