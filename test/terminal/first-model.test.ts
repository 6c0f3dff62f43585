/** The first minutes with a model: a key in the environment, without any config file, with the file that init wrote, with one's own. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, nest } from '../support/cli.ts'
import { dialects, type Speech } from '../support/dialects.ts'
import { shell } from '../support/shell.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

const speech: Speech = { text: ['Hello from afar.'] }
const far = new Map<string, Fake>()

const spoken = (kind: string) => {
  const dialect = dialects.find((each) => each.kind === kind)
  if (!dialect) throw new Error(`no dialect ${kind}`)
  return startFake(() => sends(dialect.events(speech)))
}

beforeEach(() => void far.set('chat', spoken('openai-compatible')).set('messages', spoken('anthropic')))
afterEach(() => {
  for (const fake of far.values()) fake.stop()
})

const url = (name: string) => far.get(name)?.url ?? ''
const asked = (name: string) => far.get(name)?.asked.length
const openai = () => ({ OPENAI_API_KEY: 'sk-planted-0123456789', OPENAI_BASE_URL: url('chat') })
const anthropic = () => ({ ANTHROPIC_API_KEY: 'sk-ant-planted-0123456789', ANTHROPIC_BASE_URL: url('messages').replace(/\/v1$/, '') })

describe('a key in the environment, and no config file', () => {
  test('answers, and says once who does and how to change it', async () => {
    using at = nest()
    const { code, stdout, stderr } = await at.run(['agent', '-m', 'hi'], { env: openai() })
    expect([code, stdout]).toEqual([0, 'Hello from afar.\n'])
    expect(stderr).toBe(
      'note: openai/gpt-5.4-mini answers, because OPENAI_API_KEY is set; to ask another: -m PROVIDER/MODEL; to keep your choice: braidclaw init\n',
    )
    expect(far.get('chat')?.asked[0]?.headers.get('authorization')).toBe('Bearer sk-planted-0123456789')
  })

  test('of several the first in the documented order answers; the others by their names, without a note', async () => {
    using at = nest()
    const env = { ...anthropic(), OLLAMA_HOST: url('chat') }
    const first = await at.run(['hello there'], { env })
    expect([first.code, first.stdout]).toEqual([0, 'Hello from afar.\n'])
    expect([first.stderr.includes('ANTHROPIC_API_KEY is set'), asked('messages'), asked('chat')]).toEqual([true, 1, 0])
    const named = await at.run(['-m', 'ollama/llama3.3', 'hello there'], { env })
    expect([named.code, named.stderr, asked('messages'), asked('chat')]).toEqual([0, '', 1, 1])
    expect(JSON.parse(far.get('chat')?.asked[0]?.text ?? '').model).toBe('llama3.3')
  })

  test('its address is checked before the key goes there', async () => {
    using at = nest()
    const env = { OPENAI_API_KEY: 'sk-planted-0123456789', OPENAI_BASE_URL: 'http://me:secret@host/v1' }
    const { code, stdout, stderr } = await at.run(['-m', 'openai/gpt-5', 'hello there'], { env })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toStartWith('error: OPENAI_BASE_URL: is not an address; write one such as')
    expect(stderr).not.toContain('secret')
  })

  test('an empty one counts as not set', async () => {
    using at = nest()
    const { stderr } = await at.run(['hello there'], { env: { OPENAI_API_KEY: ' ' } })
    expect(stderr).toBe(
      'note: the offline helper answers; to connect a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY or another key of docs/models.md, or run "braidclaw onboard"\n',
    )
  })
})

describe('a note about the set-up', () => {
  const note = /^note: the offline helper answers/gm

  test('is written once by all stages of a pipe and all calls of a day, and again on the next day', async () => {
    using at = nest()
    const said = async (script: string) => (await shell(at, script, {})).stderr.match(note)?.length ?? 0
    expect(await said('braidclaw "hello there" | braidclaw "and there" | braidclaw "and here"')).toBe(1)
    expect(await said('for n in 1 2 3; do braidclaw "hello $n times"; done; braidclaw agent -m hello')).toBe(0)
    const folder = join(at.home, '.braidclaw/run')
    const notes = () => readdirSync(folder).filter((name) => name.startsWith('note-'))
    const [today = ''] = notes()
    renameSync(join(folder, today), join(folder, today.replace(/note-\d+/, 'note-2020')))
    expect([await said('braidclaw "hello there"'), notes()]).toEqual([1, [today]])
  })

  test('is left out by -q and --quiet, and an error is not', async () => {
    using at = nest()
    for (const words of [
      ['-q', 'hello there'],
      ['--quiet', 'hello there'],
      ['agent', '-q', '-m', 'hello'],
      ['-cq', 'hello there'],
    ])
      expect(await at.run(words)).toMatchObject({ code: 0, stderr: '' })
    expect((await at.run(['-q', '-m', 'nobody/x', 'hello there'])).stderr).toStartWith('error: ')
  })
})

describe('init, and a key that comes later', () => {
  test('the offline helper that init chose says so once a day, init adds what is there now, and then that answers', async () => {
    using at = nest()
    expect((await at.run(['init'])).code).toBe(0)
    const before = await at.run(['agent', '-m', 'hello'])
    expect(before.stderr).toStartWith('note: the offline helper answers; to connect a real model, set OPENAI_API_KEY')
    expect((await at.run(['agent', '-m', 'hello'])).stderr).toBe('')
    const unused = await at.run(['agent', '-m', 'hello'], { env: openai() })
    expect(unused.stderr).toBe('note: the offline helper answers; to connect a real model, run "braidclaw init": OPENAI_API_KEY is set\n')
    const init = await at.run(['init'], { env: openai() })
    expect([init.code, init.stderr]).toEqual([0, ''])
    expect(init.stdout).toContain('config.toml: added provider openai (OPENAI_API_KEY is set), default_provider is now "openai"\n')
    const after = await at.run(['agent', '-m', 'hello'], { env: openai() })
    expect([after.code, after.stdout, after.stderr]).toEqual([0, 'Hello from afar.\n', ''])
    expect((await at.run(['init'], { env: openai() })).stdout).toContain('config.toml: nothing to add; default_provider is "openai"\n')
  })

  test('a default that a person chose is never replaced', async () => {
    using at = nest()
    at.config(`${minimumConfig}# the end\n`)
    const { code, stdout } = await at.run(['init'], { env: anthropic() })
    expect([code, stdout.includes('added provider anthropic (ANTHROPIC_API_KEY is set), default_provider stays "local"')]).toEqual([
      0,
      true,
    ])
    expect(readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')).toStartWith(`${minimumConfig}# the end\n`)
  })
})

test('one word at a terminal is no paid question; a sentence is one, and so is the word behind --', async () => {
  using at = nest()
  const word = await at.terminal(['models'], [], { env: openai() })
  expect([word.code, asked('chat')]).toEqual([2, 0])
  expect(word.stdout).toContain('no command "models"; who can be asked: braidclaw provider list')
  expect((await at.terminal(['which models'], [], { env: openai() })).code).toBe(0)
  expect((await at.terminal(['--', 'models'], [], { env: openai() })).code).toBe(0)
  expect(asked('chat')).toBe(2)
})

describe('doctor', () => {
  test.each([
    [
      'after an init that found none',
      undefined,
      'OPENAI_API_KEY is set and unused: "local" answers; "braidclaw init" makes "openai" answer',
    ],
    [
      'beside another provider',
      'default_provider = "ollama"\n',
      'OPENAI_API_KEY is set and unused: "ollama" answers; to ask "openai": -m openai/gpt-5.4-mini',
    ],
    ['behind a wrapper', 'default_provider = "w"\n[providers.models.w]\nkind = "reliable"\nproviders = ["openai"]\n', undefined],
    ['where it answers', 'default_provider = "openai"\n', undefined],
  ])('a key that is set and unused: %s', async (_, toml, says) => {
    using at = nest()
    if (toml === undefined) await at.run(['init'])
    else at.config(toml)
    const { stdout } = await at.run(['doctor'], { env: { OPENAI_API_KEY: 'sk-planted-0123456789' } })
    if (says === undefined) expect(stdout).not.toContain('unused')
    else expect(stdout).toContain(says)
  })
})

describe('beside a config file', () => {
  test('a person who chose the offline helper keeps it, and hears nothing; the key works by name', async () => {
    using at = nest()
    at.config(minimumConfig)
    const quiet = await at.run(['agent', '-m', 'hello'], { env: openai() })
    expect([quiet.code, quiet.stderr, asked('chat')]).toEqual([0, '', 0])
    const named = await at.run(['-m', 'openai/gpt-5', 'hello there'], { env: openai() })
    expect([named.code, named.stdout, asked('chat')]).toEqual([0, 'Hello from afar.\n', 1])
  })

  test("a table of the same name is the person's own", async () => {
    using at = nest()
    at.config(
      `default_provider = "openai"\n[providers.models.openai]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${url('chat')}"\n`,
    )
    const { code } = await at.run(['hello there'], { env: { ...openai(), OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' } })
    expect([code, asked('chat')]).toEqual([0, 1])
    expect(far.get('chat')?.asked[0]?.headers.get('authorization')).toBeNull()
  })

  test.each([[['agent', '--model', 'typo/x', '-m', 'hi']], [['-m', 'typo/x', 'hello there']]])(
    'a provider that is not there is refused, and nobody is asked: %j',
    async (args) => {
      using at = nest()
      at.config(`default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${url('chat')}"\n`)
      const { code, stdout, stderr } = await at.run(args)
      expect([code, stdout, asked('chat')]).toEqual([2, '', 0])
      expect(stderr).toStartWith('error: --model: default_model: unknown provider "typo"; there are: far, local, openai')
      expect(stderr).toContain('If "typo/x" is a model of far: "far/typo/x"')
    },
  )
})
