import { describe, expect, test } from 'bun:test'
import { startFake, testDeps } from '../../../../test/support/vendor-fake.ts'
import { askWindow } from './ask-window.ts'

const ask = (base: string, signal = new AbortController().signal, model = 'm') =>
  askWindow({ name: 'near', base, headers: { authorization: 'Bearer key' }, model, deps: testDeps(), signal })

type Pages = { readonly [path: string]: unknown }

/** Asks a server that has these pages and answers 404 to everything else. */
async function asked(pages: Pages, model = 'm') {
  const fake = startFake(
    ({ path }) => (Object.hasOwn(pages, path) ? Response.json(pages[path]) : Response.json({ error: 'not found' }, { status: 404 })),
    { questions: true },
  )
  try {
    const found = await ask(fake.url, new AbortController().signal, model)
    return { found, asked: fake.asked }
  } finally {
    fake.stop()
  }
}

const shown = (parameters?: string, more: object = {}) => ({
  modelfile: 'FROM m',
  ...(parameters === undefined ? {} : { parameters }),
  model_info: { 'general.architecture': 'qwen3', 'qwen3.context_length': 40_960, 'qwen3.embedding_length': 2048 },
  ...more,
})

describe('Ollama', () => {
  test.each<[string, Pages, object]>([
    [
      'has num_ctx of its parameters',
      { '/api/show': shown('stop "<|end|>"\nnum_ctx                        16384\ntemperature 0.6') },
      { tokens: 16_384, isLoaded: true },
    ],
    ['has no more than the model can', { '/api/show': shown('num_ctx 131072') }, { tokens: 40_960, isLoaded: true }],
    [
      'has its usual 4,096 while nothing is set and nothing is loaded, whatever the model can',
      { '/api/show': shown() },
      { tokens: 4096, isLoaded: false },
    ],
    [
      'has what the loaded model has',
      {
        '/api/show': shown('num_ctx 16384'),
        '/api/ps': {
          models: [
            { name: 'other:latest', context_length: 2048 },
            { name: 'm:latest', context_length: 8192 },
          ],
        },
      },
      { tokens: 8192, isLoaded: true },
    ],
    [
      'does not have what another model was loaded with',
      { '/api/show': shown('num_ctx 16384'), '/api/ps': { models: [{ name: 'other:latest', context_length: 2048 }] } },
      { tokens: 16_384, isLoaded: true },
    ],
    [
      'has the whole of a model elsewhere',
      { '/api/show': shown(undefined, { remote_host: 'https://ollama.com:443' }) },
      { tokens: 40_960, isLoaded: true },
    ],
  ])('%s', async (_, pages, expected) => {
    expect((await asked(pages)).found).toEqual({ isServer: true, ...expected })
  })

  test('is asked for the model by its name', async () => {
    const { asked: requests } = await asked({ '/api/show': shown() }, 'qwen3:4b')
    expect(requests.find(({ path }) => path === '/api/show')?.text).toBe('{"model":"qwen3:4b"}')
    expect(requests.map(({ headers }) => headers.get('authorization'))).toEqual(Array(5).fill('Bearer key'))
  })
})

test.each<[string, Pages, object]>([
  [
    'llama.cpp has n_ctx of a slot',
    { '/props': { total_slots: 4, default_generation_settings: { n_ctx: 8192 } } },
    { tokens: 8192, isLoaded: true },
  ],
  [
    'vLLM has max_model_len of the model',
    {
      '/v1/models': {
        data: [
          { id: 'other', max_model_len: 2048 },
          { id: 'm', max_model_len: 16_384 },
        ],
      },
    },
    { tokens: 16_384, isLoaded: true },
  ],
  [
    'a server with one model has it under any name',
    { '/v1/models': { data: [{ id: 'x', max_model_len: 16_384 }] } },
    { tokens: 16_384, isLoaded: true },
  ],
  [
    'LM Studio has the length that the model is loaded with',
    { '/api/v0/models': { data: [{ id: 'm', state: 'loaded', max_context_length: 131_072, loaded_context_length: 6000 }] } },
    { tokens: 6000, isLoaded: true },
  ],
  [
    'LM Studio of earlier versions has the longest',
    { '/api/v0/models': { data: [{ id: 'm', max_context_length: 32_768 }] } },
    { tokens: 32_768, isLoaded: true },
  ],
  [
    'LM Studio that has not loaded the model will take its usual length',
    { '/api/v0/models': { data: [{ id: 'm', state: 'not-loaded', max_context_length: 131_072 }] } },
    { tokens: 4096, isLoaded: false },
  ],
  [
    'the smallest of two answers counts',
    { '/props': { default_generation_settings: { n_ctx: 8192 } }, '/v1/models': { data: [{ id: 'm', max_model_len: 131_072 }] } },
    { tokens: 8192, isLoaded: true },
  ],
])('%s', async (_, pages, expected) => {
  expect((await asked(pages)).found).toEqual({ isServer: true, ...expected })
})

describe('without an answer', () => {
  test.each<[string, Pages]>([
    ['404 everywhere', {}],
    [
      'other numbers',
      { '/props': { default_generation_settings: { n_ctx: 0 } }, '/v1/models': { data: [{ id: 'm', max_model_len: '99999999999' }] } },
    ],
    [
      'other shapes',
      { '/props': [1], '/v1/models': { data: 'none' }, '/api/ps': { models: {} }, '/api/show': 'x', '/api/v0/models': null },
    ],
  ])('%s: something answered, and the window stays unknown', async (_, pages) => {
    expect((await asked(pages)).found).toEqual({ isServer: true })
  })

  test('nobody listens', async () => {
    const fake = startFake(() => new Response())
    fake.stop()
    expect(await ask(fake.url)).toEqual({ isServer: false })
  })

  test('a silent server costs a second, and a cancelled turn nothing', async () => {
    const fake = startFake(() => new Promise<Response>(() => {}), { questions: true })
    const start = performance.now()
    expect(await ask(fake.url)).toEqual({ isServer: false })
    expect(performance.now() - start).toBeWithin(900, 3_000)
    const again = performance.now()
    await ask(fake.url, AbortSignal.abort())
    expect(performance.now() - again).toBeLessThan(500)
    fake.stop()
  })

  test('an endless answer is not read, a redirect to another host is not followed', async () => {
    const endless = startFake(
      () => {
        const stream = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(123)) })
        return new Response(stream, { headers: { 'content-type': 'application/json' } })
      },
      { questions: true },
    )
    expect(await ask(endless.url)).not.toHaveProperty('tokens')
    endless.stop()
    const trap = startFake(() => Response.json({ data: [{ id: 'm', max_model_len: 2048 }] }), { questions: true })
    const moved = startFake(({ path }) => Response.redirect(trap.url.replace('/v1', path), 307), { questions: true })
    expect(await ask(moved.url)).not.toHaveProperty('tokens')
    expect(trap.asked).toEqual([])
    moved.stop()
    trap.stop()
  })
})
