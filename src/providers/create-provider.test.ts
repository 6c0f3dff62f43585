import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dialects } from '../../test/support/dialects.ts'
import { createDeps, sends, startFake, testDeps, wireConfig } from '../../test/support/vendor-fake.ts'
import { camel, withDefaults } from '../kit/settings.ts'
import { type ModelChunk, type Provider, ProviderFailure } from '../runtime/port.ts'
import { createProvider } from './create-provider.ts'
import { providerKinds } from './list.ts'
import { listModels, probeProvider } from './probe-provider.ts'

type Configs = { readonly [name: string]: { readonly kind: (typeof providerKinds)[number]['kind']; readonly [key: string]: unknown } }

/** Creates providers as the host does: from tables with their defaults, with names resolved to providers at the first use. */
function registry(configs: Configs, baseDir?: string) {
  const deps = createDeps({ baseDir })
  async function provider(name: string): Promise<Provider> {
    const { kind, ...given } = configs[name] ?? { kind: 'stub' }
    const rows = providerKinds.find((each) => each.kind === kind)?.settings ?? {}
    const settings = withDefaults(rows, (key) => given[camel(key)])
    return createProvider(
      { kind, name, ...settings },
      {
        ...deps,
        provider,
        brain:
          async ({ dir }) =>
          async (frame) => ({ ok: true, answer: JSON.stringify({ content: [{ type: 'text', text: `${dir} ${frame.length > 20}` }] }) }),
      },
    )
  }
  return { provider, lines: deps.lines }
}

async function inFolder<T>(files: { readonly [name: string]: string }, use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-providers-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a fixture that is missing fails when the provider is made, with its path', async () => {
  const { provider } = registry({ m: { kind: 'mock', fixture: 'nope.json' } }, '/nowhere')
  const failure = await provider('m').catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(ProviderFailure)
  expect(String(failure)).toContain('"/nowhere/nope.json"')
})

test('reliable over a provider that times out and a mock answers from the mock and logs the fallback', async () => {
  const fixtures = { 'bad.json': '{"responses":[{"error":"timeout"}]}', 'good.json': '{"responses":[{"text":"from the mock"}]}' }
  await inFolder(fixtures, async (folder) => {
    const { provider, lines } = registry(
      {
        bad_provider: { kind: 'mock', fixture: 'bad.json' },
        mock_provider: { kind: 'mock', fixture: join(folder, 'good.json') },
        safe: { kind: 'reliable', providers: ['bad_provider', 'mock_provider'] },
        router: { kind: 'router', default: 'safe', routes: { cheap: 'mock_provider' } },
      },
      folder,
    )
    expect(await probeProvider(await provider('router'), Date.now)).toMatchObject({ ok: true, model: 'mock', text: 'from the mock' })
    expect(lines.find((line) => line.event === 'provider fallback')?.fields).toMatchObject({
      from: 'bad_provider',
      to: 'mock_provider',
      code: 'timeout',
    })
  })
})

for (const dialect of dialects) {
  describe(dialect.kind, () => {
    test('a probe tells why it failed, and when it works the model, the words and the time', async () => {
      const fake = startFake((_, n) =>
        n === 0
          ? new Response(dialect.errorBody('authentication_error', 'bad key'), { status: 401 })
          : sends(dialect.events({ text: ['Hi.'] })),
      )
      const { provider } = registry({ far: wireConfig(dialect.kind, fake.url) })
      const ticks = [100, 142, 200, 207]
      const probe = async () => probeProvider(await provider('far'), () => ticks.shift() ?? 0)
      expect(await probe()).toEqual({ ok: false, ms: 42, failure: { code: 'auth', message: expect.stringMatching(/bad key.*TEST_KEY/) } })
      expect(await probe()).toEqual({ ok: true, ms: 7, model: 'model-1', text: 'Hi.' })
      fake.stop()
    })

    test('a server that falls silent in its list of models is a timeout', async () => {
      const fake = startFake(() => sends(['{"data":['], 'hold'), { questions: true })
      const list = await listModels('far', wireConfig(dialect.kind, fake.url, { totalTimeoutS: 0.05 }), testDeps())
      fake.stop()
      expect(list).toMatchObject({ ok: false, failure: { code: 'timeout' } })
    })

    test('the models of a server are listed with the key, or the failure told', async () => {
      let refused = 0
      const fake = startFake(
        ({ path }) => {
          if (path !== '/v1/models' || refused++ === 0) return new Response('no', { status: 403 })
          return Response.json({ data: [{ id: 'b' }, { id: 'a' }, { no: 'id' }, 7] })
        },
        { questions: true },
      )
      const list = () => listModels('far', wireConfig(dialect.kind, fake.url), testDeps())
      expect(await list()).toMatchObject({ ok: false, failure: { code: 'auth' } })
      expect(await list()).toEqual({ ok: true, models: ['b', 'a'].map((id) => ({ id, isLoaded: false, isChat: true })) })
      fake.stop()
      const last = fake.asked.filter(({ path }) => path === '/v1/models').at(-1)
      const headers = last?.headers
      expect([last?.path, headers?.get('x-api-key') ?? headers?.get('authorization')]).toEqual([
        '/v1/models',
        expect.stringContaining('sk-test-key'),
      ])
    })
  })
}

test('a fifo provider asks the other end of its folder', async () => {
  const { provider } = registry({ brain: { kind: 'fifo', dir: '/run/fifos' } })
  const chunks: ModelChunk[] = []
  const request = { systemPrompt: '', messages: [{ role: 'user' as const, content: 'Hello' }], tools: [], model: '' }
  for await (const chunk of (await provider('brain')).chat(request, new AbortController().signal)) chunks.push(chunk)
  expect(chunks[0]).toEqual({ type: 'text', text: '/run/fifos true' })
})
