/** `onboard` in a terminal: what it asks, that it tries before it writes, what it leaves alone; and its refusal without a terminal. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

const config = (at: Nest) => join(at.home, '.braidclaw/config.toml')
const written = (at: Nest) => Bun.TOML.parse(readFileSync(config(at), 'utf8'))
const keys = (at: Nest) => join(at.home, '.braidclaw/keys.env')
const down = (times: number) => '\u001b[B'.repeat(times)
const secret = 'sk-planted-secret-000111222'

let fake: Fake
/** A server with two models that wants the secret, or no key at all. */
beforeEach(() => {
  fake = startFake(
    ({ path, headers }) => {
      const authorization = headers.get('authorization')
      if (authorization !== null && authorization !== `Bearer ${secret}`)
        return Response.json({ error: { message: `Incorrect API key provided: ${authorization}` } }, { status: 401 })
      if (path.endsWith('/models')) return Response.json({ data: [{ id: 'alpha' }, { id: 'beta' }, { id: 'gpt-5.4-mini' }] })
      return sends(dialects[0]?.events({ text: ['Hello from afar.'] }) ?? [])
    },
    { questions: true },
  )
})
afterEach(() => fake.stop())

const openai = () => ({ OPENAI_BASE_URL: fake.url })
/** In place of the address that is proposed. */
const address = () => `${'\u007f'.repeat(40)}${fake.url}\r`

describe('a vendor', () => {
  test('whose key is set: tried, and answering from the next turn on', async () => {
    using at = nest()
    const env = { ...openai(), OPENAI_API_KEY: secret }
    const { code, stdout } = await at.terminal(
      ['onboard'],
      [
        ['OPENAI_API_KEY is set', '\r'],
        ['Which model?', '\r'],
      ],
      { env },
    )
    expect(code).toBe(0)
    expect(stdout).toMatch(/openai\/gpt-5\.4-mini answered in \d+ ms: Hello from afar\./)
    expect(written(at)).toMatchObject({ default_provider: 'openai', default_model: 'gpt-5.4-mini' })
    expect([existsSync(keys(at)), `${stdout}${readFileSync(config(at), 'utf8')}`.includes('planted')]).toEqual([false, false])
    expect(await at.run(['hello there'], { env })).toEqual({ code: 0, stdout: 'Hello from afar.\n', stderr: '' })
  })

  test('whose key is typed: never shown, kept for its owner alone, and used from then on', async () => {
    using at = nest()
    const answers = [
      ['needs a key', '\r'],
      ['Where is the key', '\r'],
      ['The key', `${secret}\r`],
      ['Which model?', '\r'],
    ] as const
    const { code, stdout } = await at.terminal(['onboard'], answers, { env: openai() })
    expect([code, stdout.includes('planted')]).toEqual([0, false])
    expect([readFileSync(config(at), 'utf8').includes('planted'), statSync(keys(at)).mode & 0o777]).toEqual([false, 0o600])
    expect((await at.run(['say my key'])).stdout).toBe('Hello from afar.\n')
    expect(fake.asked.at(-1)?.headers.get('authorization')).toBe(`Bearer ${secret}`)
    const told = await at.run(['agent', '-m', `what is ${secret}?`])
    expect([told.code, fake.asked.at(-1)?.text.includes('planted')]).toEqual([0, false])
  })

  test('whose key is wrong: the server says so, another one is asked for, and nothing is written until it answers', async () => {
    using at = nest()
    const wrong = [
      ['needs a key', '\r'],
      ['Where is the key', '\r'],
      ['The key', 'sk-wrong-key-0000\r'],
    ] as const
    const stopped = await at.terminal(['onboard'], [...wrong, ['OPENAI_API_KEY was refused', '\u0003']], { env: openai() })
    expect([stopped.code, existsSync(join(at.home, '.braidclaw')), stopped.stdout.includes('wrong-key')]).toEqual([130, false, false])
    const right = [
      ['OPENAI_API_KEY was refused', '\r'],
      ['The key', `${secret}\r`],
      ['Which model?', '\r'],
    ] as const
    const { code, stdout } = await at.terminal(['onboard'], [...wrong, ...right], { env: openai() })
    expect([code, stdout.includes('answered in')]).toEqual([0, true])
    expect(readFileSync(keys(at), 'utf8')).not.toContain('wrong')
  })

  test('whose variable holds a wrong key: the right one is kept under another name, since the variable counts more', async () => {
    using at = nest()
    const env = { ...openai(), OPENAI_API_KEY: 'sk-wrong-key-0000' }
    const answers = [
      ['OPENAI_API_KEY is set', '\r'],
      ['OPENAI_API_KEY was refused', '\r'],
      ['The key', `${secret}\r`],
      ['Which model?', '\r'],
    ] as const
    expect((await at.terminal(['onboard'], answers, { env })).code).toBe(0)
    expect(readFileSync(keys(at), 'utf8')).toContain(`OWN_OPENAI_API_KEY='${secret}'`)
    expect((await at.run(['hello there'], { env })).stdout).toBe('Hello from afar.\n')
  })

  test('whose key is in a variable that is not set yet: named, not tried, and what to do is said', async () => {
    using at = nest()
    const answers = [
      ['needs a key', '\r'],
      ['Where is the key', `${down(1)}\r`],
      ['What is the variable called', `${'\u007f'.repeat(14)}WORK_KEY\r`],
      ['As the server spells it', '\r'],
    ] as const
    const { code, stdout } = await at.terminal(['onboard'], answers, { env: openai() })
    expect([code, fake.asked.length]).toEqual([0, 0])
    expect(stdout).toContain('Not tried: WORK_KEY is not set here. Set it, and then: braidclaw provider test openai')
    expect(written(at)).toMatchObject({ providers: { models: { openai: { api_key_env: 'WORK_KEY' } } } })
  })
})

describe('a server on this machine', () => {
  test('its address, and a model of those that it has', async () => {
    using at = nest()
    const answers = [
      ['Which model should', 'lm st\r'],
      ['What is its address', address()],
      ['whose name I type', 'bet\r'],
    ] as const
    const { code, stdout } = await at.terminal(['onboard'], answers)
    expect([code, stdout.includes('lmstudio/beta answered in')]).toEqual([0, true])
    expect(written(at)).toMatchObject({
      default_provider: 'lmstudio',
      providers: { models: { lmstudio: { kind: 'openai-compatible', base_url: fake.url, model: 'beta' } } },
    })
    expect((await at.run(['hello there'])).stdout).toBe('Hello from afar.\n')
  })

  test('whose models have names that would drive the terminal: they are spelled out', async () => {
    using at = nest()
    const hostile = startFake(() => Response.json({ data: [{ id: 'al\u001b[2J\u202epha' }, { id: 'beta' }] }), { questions: true })
    const answers = [
      ['Which model should', 'lm st\r'],
      ['What is its address', `${'\u007f'.repeat(40)}${hostile.url}\r`],
      ['whose name I type', '\u0003'],
    ] as const
    const { stdout } = await at.terminal(['onboard'], answers)
    hostile.stop()
    expect(stdout).toContain(String.raw`al\u001b[2J\u202epha`)
    expect([stdout.includes('\u001b[2J'), stdout.includes('\u202e')]).toEqual([false, false])
  })

  test.each(['', 'http://http://127.0.0.1:1234/v1'])('an address that is none is asked again: %j', async (typed) => {
    using at = nest()
    const answers = [
      ['Which model should', 'another\r'],
      ['What is its address', `${typed}\r`],
      ['An address such as', '\u0003'],
    ] as const
    const { code } = await at.terminal(['onboard'], answers)
    expect([code, existsSync(join(at.home, '.braidclaw'))]).toEqual([130, false])
  })
})

describe('beside a config file', () => {
  const mine = '# mine\ndefault_provider = "far" # why\n[providers.models.far]\nkind = "mock"\n'

  test.each([
    ['\r', 'default_model = "gpt-5.4-mini"\n# mine\ndefault_provider = "openai" # why\n'],
    [`${down(1)}\r`, '# mine\ndefault_provider = "far" # why\n'],
  ])('who answers until now is replaced only by a yes: %j', async (typed, start) => {
    using at = nest()
    at.config(mine)
    const env = { ...openai(), OPENAI_API_KEY: secret }
    const answers = [
      ['OPENAI_API_KEY is set', '\r'],
      ['Which model?', '\r'],
      ['Until now "far" answers', typed],
    ] as const
    const { code } = await at.terminal(['onboard'], answers, { env })
    const text = readFileSync(config(at), 'utf8')
    expect([code, text.startsWith(start), text.includes('[providers.models.openai]')]).toEqual([0, true, true])
  })

  test('one that is wrong is named before anything is asked', async () => {
    using at = nest()
    at.config('default_provider = 3\n')
    const { code, stdout } = await at.terminal(['onboard'], [])
    expect([code, stdout.includes('default_provider'), stdout.includes('Which model')]).toEqual([1, true, false])
  })
})

test('the offline helper that a person chose stays, and is not complained of', async () => {
  using at = nest()
  const { code } = await at.terminal(['onboard'], [['Which model should', 'offl\r']])
  expect(code).toBe(0)
  expect(await at.run(['agent', '-m', 'hello'])).toMatchObject({ code: 0, stderr: '' })
  expect((await at.run(['init'], { env: { OPENAI_API_KEY: secret } })).stdout).toContain('default_provider stays "local"')
})

test.each(['\u0003', '\u001b'])('%j changes nothing', async (key) => {
  using at = nest()
  const { code, stdout } = await at.terminal(['onboard'], [['Which model', key]])
  expect(code).toBe(130)
  expect(stdout).toContain('Nothing was changed.')
  expect(existsSync(join(at.home, '.braidclaw'))).toBe(false)
})

test('without a terminal it says what to use instead', async () => {
  using at = nest()
  const refused = { code: 2, stdout: '', stderr: 'error: onboard asks questions and needs a terminal; use "braidclaw init" in scripts\n' }
  expect(await at.run(['onboard'])).toEqual(refused)
  expect(await at.run(['onboard'], { stdin: '\n\n' })).toEqual(refused)
})

test('init expands ~, keeps what is there, and names the proposed provider only when it wrote it', async () => {
  using at = nest()
  const env = { OPENAI_API_KEY: secret, OLLAMA_HOST: '127.0.0.1' }
  const first = await at.run(['init', '--workspace', '~/elsewhere'], { env, cwd: at.dir })
  expect([first.code, existsSync(join(at.home, 'elsewhere'))]).toEqual([0, true])
  expect(first.stderr).toContain('provider test openai')
  const second = await at.run(['init'], { env })
  expect([second.code, second.stderr]).toEqual([
    0,
    expect.stringMatching(/^note: OLLAMA_HOST is set, and not written: .*; then run init again\n$/),
  ])
  expect(second.stdout).toContain('kept      config')
})

describe('what goes wrong is said, and the question comes again', () => {
  test('an address where nobody answers, then the right one: nothing else is asked twice', async () => {
    using at = nest()
    const answers = [
      ['Which model should', 'ano\r'],
      ['What is its address', 'http://127.0.0.1:1/v1\r'],
      ['What now?', '\r'],
      ['What is its address', address()],
      ['whose name I type', '\r'],
    ] as const
    const { code, stdout } = await at.terminal(['onboard'], answers)
    expect([code, stdout.includes('server/alpha answered in')]).toEqual([0, true])
    expect(stdout).toContain('127.0.0.1:1')
  })

  test('a server that lists no models: a name is asked for', async () => {
    using at = nest()
    const silent = startFake(
      ({ path }) =>
        path.endsWith('/models') ? new Response('no', { status: 404 }) : sends(dialects[0]?.events({ text: ['Hello.'] }) ?? []),
      { questions: true },
    )
    const answers = [
      ['Which model should', 'ano\r'],
      ['What is its address', `${silent.url}\r`],
      ['As the server spells it', 'mine\r'],
    ] as const
    const { code, stdout } = await at.terminal(['onboard'], answers)
    silent.stop()
    expect([code, stdout.includes('does not say which models it has'), stdout.includes('server/mine answered in')]).toEqual([0, true, true])
  })

  test('ten thousand models are searched without a wait; the name of one beyond them is typed', async () => {
    using at = nest()
    const many = startFake(
      ({ path }) =>
        path.endsWith('/models')
          ? Response.json({
              data: Array.from({ length: 12_000 }, (_, n) => ({
                id: `vendor/model-${String(n).padStart(5, '0')}`,
                description: 'x'.repeat(200),
              })),
            })
          : sends(dialects[0]?.events({ text: ['Hello.'] }) ?? []),
      { questions: true },
    )
    const start = [
      ['Which model should', 'ano\r'],
      ['What is its address', `${many.url}\r`],
    ] as const
    const inList = await at.terminal(['onboard'], [...start, ['type to search', 'model-04321\r']])
    const beyond = [
      ['type to search', 'model-11999\r'],
      ['As the server spells it', 'vendor/model-11999\r'],
    ] as const
    const typed = await at.terminal(['onboard'], [...start, ...beyond])
    many.stop()
    expect([inList.code, inList.stdout.includes('server/vendor/model-04321 answered in')]).toEqual([0, true])
    const says = ['As the server spells it', 'server/vendor/model-11999 answered in'].map((text) => typed.stdout.includes(text))
    expect([typed.code, ...says]).toEqual([0, true, true])
  })
})
