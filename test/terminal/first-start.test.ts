/** From the program's first start to a model's answer, through a pty: with each provider, in twelve keystrokes besides the key. */

import { afterEach, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { knownNames, knownProvider } from '../../src/config/known-providers.ts'
import { type Nest, nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { needs } from '../support/needs.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

const config = (at: Nest) => join(at.home, '.braidclaw/config.toml')
const written = (at: Nest) => Bun.TOML.parse(readFileSync(config(at), 'utf8'))
const secret = 'sk-planted-secret-000111222'

const byKind = (kind: string) => dialects.find((each) => each.kind === kind) ?? dialects[0]
const fakes: Fake[] = []
afterEach(() => {
  for (const one of fakes.splice(0)) one.stop()
})

/** A server that speaks the wire of a vendor, and refuses every other key and every other path. */
function server(kind: string, models: readonly string[], wanted?: string): Fake {
  const dialect = byKind(kind)
  const one = startFake(
    ({ path, headers }) => {
      const key = headers.get('x-api-key') ?? headers.get('authorization')?.replace('Bearer ', '')
      if (wanted !== undefined && key !== wanted)
        return new Response(dialect?.errorBody('authentication_error', 'wrong key'), { status: 401 })
      if (path === '/v1/models')
        return Response.json({ data: models.map((id) => ({ id, object: 'model', type: 'model', display_name: id })) })
      return path === `/v1${dialect?.path}`
        ? sends(dialect?.events({ text: ['Hello from afar.'] }) ?? [])
        : new Response('', { status: 404 })
    },
    { questions: true },
  )
  fakes.push(one)
  return one
}

type Typed = readonly (readonly [appears: string, type: string])[]
const talk = [
  ['> ', 'hi\r'],
  ['Hello from afar.', '\u0004'],
] as const
/** Counts what a person presses; a key or an address is pasted, and not counted. */
const keystrokes = (answers: Typed, pasted: readonly string[]) =>
  answers
    .slice(0, -1)
    .map(([, typed]) => pasted.reduce((rest, one) => rest.replace(one, ''), typed))
    .reduce((sum, typed) => sum + typed.length, 0)
const withKey = (search: string): Typed => [
  ['Connect one now?', '\r'],
  ['type to search', `${search}\r`],
  ['Where is the key', '\r'],
  ['The key', `${secret}\r`],
  ['whose name I type', '\r'],
  ...talk,
]

test.each([
  ['openai', '', 'openai-compatible', 'gpt-5.4-mini'],
  ['anthropic', 'an', 'anthropic', 'claude-sonnet-5'],
  ['openrouter', 'rou', 'openai-compatible', 'openrouter/auto'],
  ['gemini', 'gem', 'openai-compatible', 'gemini-flash-latest'],
  ['groq', 'gr', 'openai-compatible', 'openai/gpt-oss-120b'],
  ['mistral', 'mis', 'openai-compatible', 'mistral-medium-latest'],
  ['deepseek', 'dee', 'openai-compatible', 'deepseek-v4-flash'],
  ['xai', 'x', 'openai-compatible', 'grok-4.3'],
])('%s: at most twelve keys besides the key', async (name, search, kind, usual) => {
  using at = nest()
  const one = server(kind, ['a-model', usual, 'text-embedding-3'], secret)
  const answers = withKey(search)
  const env = { [`${name.toUpperCase()}_BASE_URL`]: one.url }
  const { code, stdout } = await at.terminal(['agent'], answers, { env })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`${name}/${usual} answered in`) })
  expect(keystrokes(answers, [secret])).toBeLessThanOrEqual(12)
  expect(stdout).not.toContain('planted')
  expect(written(at)).toMatchObject({ default_provider: name, default_model: usual })
  expect(one.asked.at(-1)?.path).toBe(`/v1${byKind(kind)?.path}`)
})

test('OpenAI by its own protocol, which its own address alone speaks', () => {
  const openaiRow = knownProvider('openai', {})
  expect([openaiRow?.kind, openaiRow?.baseUrl]).toEqual(['openai', undefined])
})

test.if(needs('bwrap')).each([
  ['ollama', 11_434],
  ['lmstudio', 1234],
])('%s is found at its usual port, stands first and asks no address', async (name, port) => {
  using at = nest()
  // Its own network has both ports free.
  const script = join(at.dir, 'with-server.ts')
  const events = JSON.stringify(byKind('openai-compatible')?.events({ text: ['Hello from afar.'] }))
  writeFileSync(
    script,
    `Bun.serve({ hostname: '127.0.0.1', port: ${port}, fetch: ({ url }) => url.endsWith('/chat/completions')
      ? new Response(${events}.join(''), { headers: { 'content-type': 'text/event-stream' } })
      : url.endsWith('/v1/models') ? Response.json({ data: [{ id: 'qwen3:8b' }] }) : new Response('', { status: 404 }) })
    process.on('SIGINT', () => {})
    process.exit(await Bun.spawn(process.argv.slice(2), { stdio: ['inherit', 'inherit', 'inherit'] }).exited)`,
  )
  const through = ['bwrap', '--dev-bind', '/', '/', '--unshare-net', process.execPath, '--config=/dev/null', script]
  const answers: Typed = [['Connect one now?', '\r'], ['running, 1 model', '\r'], ['whose name I type', '\r'], ...talk]
  const { code, stdout } = await at.terminal([], answers, { through })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`${name}/qwen3:8b answered in`) })
  expect(keystrokes(answers, [])).toBe(6)
  expect(written(at)).toMatchObject({ default_provider: name, default_model: 'qwen3:8b' })
})

test('any compatible address: the key is asked for when the server wants one', async () => {
  using at = nest()
  const one = server('openai-compatible', ['local-7b'], secret)
  const answers: Typed = [
    ['Connect one now?', '\r'],
    ['type to search', 'ano\r'],
    ['What is its address', `${one.url}\r`],
    ['Where is the key', '\r'],
    ['The key', `${secret}\r`],
    ['whose name I type', '\r'],
    ...talk,
  ]
  const { code } = await at.terminal(['agent'], answers)
  expect([code, keystrokes(answers, [secret, one.url])]).toEqual([0, 12])
  expect(written(at)).toMatchObject({ default_provider: 'server', providers: { models: { server: { api_key_env: 'SERVER_API_KEY' } } } })
})

test('a no goes on with the offline helper, and writes no config file', async () => {
  using at = nest()
  const answers: Typed = [
    ['Connect one now?', 'n\r'],
    ['> ', 'hello\r'],
    ['I am the offline helper', '\u0004'],
  ]
  expect((await at.terminal(['agent'], answers)).code).toBe(0)
  expect(existsSync(config(at))).toBe(false)
  const { code, stdout } = await at.terminal([], [['Connect one now?', 'n\r']])
  expect([code, stdout.includes('braidclaw help all')]).toEqual([2, true])
})

test('Ctrl-C at the offer, at a question and while a server is asked: 130, and nothing is written', async () => {
  using at = nest()
  const slow = startFake(() => new Promise(() => {}), { questions: true })
  fakes.push(slow)
  const env = { OPENROUTER_BASE_URL: slow.url }
  const steps = withKey('rou').slice(0, 4)
  for (const answers of [
    [['Connect one now?', '\u0003']],
    [...steps.slice(0, 2), ['Where is the key', '\u0003']],
    [...steps, ['which models it has', '\u0003']],
  ] as const)
    expect([(await at.terminal(['agent'], answers, { env })).code, existsSync(join(at.home, '.braidclaw'))]).toEqual([130, false])
})

test('docs/models.md names the variables and the model of every provider that needs no table', () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/models.md'), 'utf8')
  const missing = knownNames.filter((name) => {
    const { because = '', model = '' } = knownProvider(name, {}) ?? {}
    return !page.includes(`| \`${name}\` | \`${because}\` | ${model ? `\`${model}\`` : 'the model'}`)
  })
  expect(missing).toEqual([])
})

test('nothing is offered to one turn, to a dumb terminal, and to who chose the offline helper', async () => {
  using at = nest()
  const offered = async (words: readonly string[], answers: Typed, env = {}) =>
    (await at.terminal(words, answers, { env })).stdout.includes('Connect one')
  expect(await offered(['agent', '-m', 'hello'], [])).toBe(false)
  expect(await offered(['agent'], [['> ', '\u0004']], { TERM: 'dumb' })).toBe(false)
  at.config('default_provider = "local"\n')
  expect(await offered(['agent'], [['> ', '\u0004']])).toBe(false)
  at.config('default_provider = 3\n')
  expect(await offered([], [])).toBe(false)
})
