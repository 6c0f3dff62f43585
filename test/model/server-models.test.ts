/** The models of a server: listed by a command, chosen when nobody named one, and named when the one that was asked for is not there. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { type Asked, sends, startFake } from '../support/vendor-fake.ts'

type Pages = { readonly [path: string]: unknown }

const spoken = () => sends(dialects.find(({ kind }) => kind === 'openai-compatible')?.events({ text: ['Hello from afar.'] }) ?? [])
const modelIn = ({ text }: Asked) => JSON.parse(text).model

/** Answers these pages with JSON, and questions to a model with a greeting; another model than these is not found. */
function server(pages: Pages, models?: readonly string[]) {
  const fake = startFake(
    (asked) => {
      const page = pages[asked.path]
      if (page !== undefined) return Response.json(page)
      if (!asked.path.endsWith('/chat/completions')) return new Response('404 page not found', { status: 404 })
      if (models === undefined || models.includes(modelIn(asked))) return spoken()
      const error = { message: `model "${modelIn(asked)}" not found, try pulling it first`, type: 'api_error' }
      return Response.json({ error }, { status: 404 })
    },
    { questions: true },
  )
  const said = () => fake.asked.filter(({ path }) => path.endsWith('/chat/completions'))
  return { ...fake, said, host: fake.url.replace('/v1', ''), [Symbol.dispose]: fake.stop }
}

const ids = (...names: readonly string[]) => ({ object: 'list', data: names.map((id) => ({ id, object: 'model' })) })
const ollama = (names: readonly string[], running: readonly string[] = []): Pages => ({
  '/v1/models': ids(...names),
  '/api/tags': { models: names.map((name) => ({ name, details: { family: name.startsWith('all-') ? 'bert' : 'llama' } })) },
  '/api/ps': { models: running.map((name) => ({ name })) },
})

describe('provider models', () => {
  test('lists what the server of a provider has, in a text and as JSON', async () => {
    using far = server(ollama(['qwen3:4b', 'all-minilm:latest', 'llama3.2:1b'], ['llama3.2:1b']))
    using at = nest()
    const env = { OLLAMA_HOST: far.host }
    const { code, stdout, stderr } = await at.run(['provider', 'models', 'ollama'], { env })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toStartWith(
      `ollama at ${far.url} has 3 models; to ask one: -m ollama/MODEL\n  all-minilm:latest  (does not chat)\n  llama3.2:1b  (loaded)\n  qwen3:4b\n`,
    )
    const json = JSON.parse((await at.run(['provider', 'models', 'ollama', '--json'], { env })).stdout)
    expect(json).toMatchObject([
      { provider: 'ollama', model: 'qwen3:4b', listed: true, isLoaded: false, isChat: true },
      { model: 'all-minilm:latest', isChat: false },
      { model: 'llama3.2:1b', isLoaded: true },
    ])
    expect(far.said()).toEqual([])
  })

  test('follows the pages of Anthropic with the key, and shows what is known of the model that is configured', async () => {
    const asked: string[] = []
    const far = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        const { pathname, searchParams } = new URL(request.url)
        asked.push(`${pathname} ${searchParams.get('after_id')} ${request.headers.get('x-api-key')}`)
        const first = searchParams.get('after_id') === null
        return Response.json({ data: [{ type: 'model', id: first ? 'one' : 'two' }], has_more: first, last_id: first ? 'one' : 'two' })
      },
    })
    using at = nest()
    const env = { ANTHROPIC_API_KEY: 'sk-ant-planted-0123456789', ANTHROPIC_BASE_URL: `http://127.0.0.1:${far.port}` }
    const { code, stdout } = await at.run(['provider', 'models', 'anthropic'], { env })
    void far.stop(true)
    expect([code, asked]).toEqual([0, ['/v1/models null sk-ant-planted-0123456789', '/v1/models one sk-ant-planted-0123456789']])
    expect(stdout).toStartWith('anthropic/claude-sonnet-5\n')
    expect(stdout).toContain('has 2 models; to ask one: -m anthropic/MODEL\n  one\n  two\n')
  })

  test.each([
    ['a server without a list', { '/v1/models': { hello: 1 } }, 'without a list of models'],
    ['a list elsewhere', {}, 'answered 404'],
  ])('says in words why there is no list: %s', async (_, pages, why) => {
    using far = server(pages)
    using at = nest()
    at.config(`default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${far.url}"\n`)
    const { code, stderr } = await at.run(['provider', 'models', 'far'])
    expect([code, stderr.includes(why), stderr.startsWith('error: the models of "far" cannot be listed: ')]).toEqual([8, true, true])
    const all = await at.run(['provider', 'models'])
    expect([all.code, all.stderr.startsWith('warn: the models of "far" cannot be listed: ')]).toEqual([0, true])
  })

  test('completes the name of a provider, and needs a key where the vendor does', async () => {
    using at = nest()
    expect((await at.run(['completion', '--', 'bash', 'provider', 'models', 'op'])).stdout).not.toContain('error')
    const { code, stderr } = await at.run(['provider', 'models', 'openai'], { env: { BRAIDCLAW_PROVIDER: 'openai' } })
    expect([code, stderr]).toEqual([8, expect.stringContaining('OPENAI_API_KEY is not set')])
  })
})

describe('a server alone', () => {
  test.each([
    ['the only one that can answer', ['all-minilm:latest', 'llama3.2:1b'], [], 'llama3.2:1b', 'the only model there'],
    ['the first', ['b:1b', 'a:1b'], [], 'b:1b', 'the first there that can answer, of 2 models'],
    ['the one that is loaded', ['b:1b', 'a:1b'], ['a:1b'], 'a:1b', 'loaded there, of 2 models'],
  ])('answers with %s of its models, and says so', async (_, names, running, model, why) => {
    using far = server(ollama(names, running))
    using at = nest()
    const env = { OLLAMA_HOST: far.host }
    const { code, stdout, stderr } = await at.run(['hello there'], { env })
    expect([code, stdout, far.said().map(modelIn)]).toEqual([0, 'Hello from afar.\n', [model]])
    expect(stderr).toBe(
      `note: ollama/${model} answers, because OLLAMA_HOST is set; to ask another: -m PROVIDER/MODEL; to keep your choice: braidclaw init\nnote: ollama/${model} is ${why}\n`,
    )
    expect((await at.run(['doctor'], { env })).stdout).toContain(`ollama/${model} is ${why}`)
  })

  test('LM Studio too, whose embedding models do not answer', async () => {
    const models = [
      { id: 'nomic-1', type: 'embeddings', state: 'loaded' },
      { id: 'big', type: 'llm', state: 'not-loaded' },
      { id: 'seen', type: 'vlm', state: 'loaded' },
    ]
    using far = server({ '/v1/models': ids('nomic-1', 'big', 'seen'), '/api/v0/models': { data: models } })
    using at = nest()
    const { code } = await at.run(['agent', '-m', 'hello there'], { env: { LMSTUDIO_HOST: far.host.replace('http://', '') } })
    expect([code, far.said().map(modelIn)]).toEqual([0, ['seen']])
  })

  test('says how to get a model when it has none, and how to start it when it does not answer', async () => {
    using far = server({ '/v1/models': { object: 'list', data: null }, '/api/tags': { models: [] } })
    using at = nest()
    const none = await at.run(['hello there'], { env: { OLLAMA_HOST: far.host } })
    expect([none.code, none.stdout]).toEqual([8, ''])
    expect(none.stderr).toBe(
      `error: no model is named, and the server of "ollama" at ${far.url} has none that can answer; get one: ollama pull qwen3:8b\n`,
    )
    const silent = await at.run(['agent', '-m', 'hello there'], { env: { OLLAMA_HOST: '127.0.0.1:9' } })
    expect([silent.code, silent.stderr]).toEqual([8, expect.stringMatching(/does not say what it has: .*127\.0\.0\.1:9.*start the server/)])
    const doctor = await at.run(['doctor'], { env: { OLLAMA_HOST: '127.0.0.1:9' } })
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringMatching(/✗ model .*127\.0\.0\.1:9/)])
  })

  test('init keeps the model that the server has, and says when it did not answer', async () => {
    using far = server(ollama(['llama3.2:1b']))
    using at = nest()
    const silent = await at.run(['init'], { env: { OLLAMA_HOST: '127.0.0.1:9' } })
    expect([silent.code, silent.stderr]).toEqual([0, expect.stringMatching(/^note: OLLAMA_HOST is set, and not written: .*127\.0\.0\.1:9/)])
    expect((await at.run(['init'], { env: { OLLAMA_HOST: far.host } })).code).toBe(0)
    expect(readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')).toContain('default_model = "llama3.2:1b"')
    const { code, stdout, stderr } = await at.run(['hello there'])
    expect([code, stdout, stderr]).toEqual([0, 'Hello from afar.\n', ''])
  })
})

describe('a model that is not there', () => {
  const far = (url: string, model: string) =>
    `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "${model}"\nbase_url = "${url}"\n`

  test('is refused with what the server has, the most similar first', async () => {
    using fake = server(ollama(['a:1b', 'b:1b', 'qwen3:4b', 'all-minilm:latest']), [])
    using at = nest()
    at.config(far(fake.url, 'qwen3:8b'))
    const { code, stdout, stderr } = await at.run(['hello there'])
    expect([code, stdout, fake.said().length]).toEqual([8, '', 1])
    expect(stderr).toContain(
      'model "qwen3:8b" not found, try pulling it first; did you mean "qwen3:4b"?; the server has qwen3:4b, a:1b, b:1b; to choose one: -m far/qwen3:4b\n',
    )
  })

  test('of many models a few are named', async () => {
    using fake = server({ '/v1/models': ids(...Array.from({ length: 40 }, (_, n) => `model-${n}`)) }, [])
    using at = nest()
    at.config(far(fake.url, 'strange'))
    const { stderr } = await at.run(['hello there'])
    expect(stderr).toMatch(
      /the server has (model-\d+, ){7}model-\d+ and 32 more \(braidclaw provider models far\); to choose one: -m far\/model-0\n/,
    )
  })

  test.each([
    ['Ollama', 400, 'registry.ollama.ai/library/gemma:2b does not support tools'],
    [
      'OpenRouter',
      404,
      'No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs',
    ],
    ['llama.cpp', 500, 'tools param requires --jinja flag'],
    ['vLLM', 400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    ['another', 400, '`tools` is not supported by this model'],
  ])('and a model that takes no tools is asked without them, as the message says: %s', async (_, status, message) => {
    const fake = startFake(({ text }) =>
      JSON.parse(text).tools === undefined ? spoken() : Response.json({ error: { message, type: 'invalid_request_error' } }, { status }),
    )
    using at = nest()
    at.config(far(fake.url, 'gemma:2b'))
    const { code, stderr } = await at.run(['agent', '-m', 'hello there'])
    expect([code, fake.asked.length]).toEqual([8, 1])
    const hint = /to ask it without tools: braidclaw (-m \S+) "…"; to see other models: braidclaw provider models far/.exec(stderr)?.[1]
    expect(hint).toBe('-m far/gemma:2b')
    const again = await at.run([...(hint ?? '').split(' '), 'hello there'])
    fake.stop()
    expect([again.code, again.stdout]).toEqual([0, 'Hello from afar.\n'])
  })
})

describe('a config file without default_provider', () => {
  const table = (name: string, url: string, kind = 'openai-compatible') =>
    `[providers.models.${name}]\nkind = "${kind}"\nmodel = "m-${name}"\nbase_url = "${url}"\n`

  test('its only provider answers, also beside a key in the environment', async () => {
    using far = server({})
    using at = nest()
    at.config(table('far', far.url))
    const { code, stdout, stderr } = await at.run(['hello there'], { env: { OPENAI_API_KEY: 'sk-planted-0123456789' } })
    expect([code, stdout, stderr, far.said().map(modelIn)]).toEqual([0, 'Hello from afar.\n', '', ['m-far']])
    const named = await at.run(['-m', 'other', 'hello there'])
    expect([named.code, far.said().map(modelIn).at(-1)]).toEqual([0, 'other'])
  })

  test('so does a wrapper of all the others', async () => {
    using far = server({})
    using at = nest()
    at.config(`${table('far', far.url)}${table('near', far.url)}[providers.models.w]\nkind = "reliable"\nproviders = ["near", "far"]\n`)
    expect((await at.run(['hello there'])).code).toBe(0)
    expect(far.said().map(modelIn)).toEqual(['m-near'])
  })

  test('of several none answers, and the message says how to choose', async () => {
    using far = server({})
    using at = nest()
    at.config(table('far', far.url) + table('near', far.url))
    for (const args of [['hello there'], ['agent', '-m', 'hello there']]) {
      const { code, stdout, stderr } = await at.run(args)
      expect([code, stdout]).toEqual([8, ''])
      expect(stderr).toContain('several providers are configured (far, near), and none is the default; write default_provider = "far"')
    }
    expect((await at.run(['-m', 'near', 'hello there'])).code).toBe(0)
    expect((await at.run(['hello there'], { env: { BRAIDCLAW_PROVIDER: 'local' } })).code).toBe(0)
  })
})

test.each([
  ['\u200bsk-planted-0123456789', 'U+200B at character 1'],
  ['sk-planted-0123456789\n', 'U+000A at character 22'],
  ['sk-plänted-0123456789', 'U+00E4 at character 6'],
])('a key that no header can carry is an error of the configuration, and nobody is asked: %j', async (key, what) => {
  using far = server({})
  using at = nest()
  at.config(
    `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${far.url}"\napi_key_env = "FAR_KEY"\n`,
  )
  const { code, stderr } = await at.run(['hello there'], { env: { FAR_KEY: key } })
  expect([code, far.said()]).toEqual([8, []])
  expect(stderr).toBe(
    `error: the key in FAR_KEY holds ${what}, which no key has; copy the key again, without line ends and hidden characters\n`,
  )
})
