import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { repetitions } from '../../../../test/support/tier.ts'
import { ask, testDeps, wireConfig } from '../../../../test/support/vendor-fake.ts'
import { startWindowServer, type WindowServerOptions, type Wording } from '../../../../test/support/window-server.ts'
import { configOf } from '../../../config/load.fixture.ts'
import { tokensOf } from '../../../kit/content/tokens.ts'
import { type Memory, openMemory } from '../../../memory/memory.ts'
import { createWired } from '../../../providers/http-provider.ts'
import { modelCallProvider } from '../../../providers/model-call.ts'
import { type ChatRequest, type ModelWindow, type Provider, ProviderFailure } from '../../../runtime/port.ts'
import { createHostContext } from '../../setup/context.ts'
import type { AskedModel } from './model-window.ts'
import { askedModels, createModelWindows, withAnswerRoom } from './model-window.ts'

const estimate = (window: ModelWindow, text: string) => Math.ceil(tokensOf(text) * window.scale())

let folder = ''
let memory: Memory
const clock = { now: Date.parse('2026-11-28') }
const open = () => {
  const opened = openMemory({ path: join(folder, 'memory.sqlite'), log: () => {}, now: () => clock.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  memory = opened.memory
}
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-window-'))
  open()
})
afterEach(() => {
  memory.close()
  rmSync(folder, { recursive: true, force: true })
})

const never = new AbortController().signal

/** Opens the windows as a process of the home does; `steps` are the writes that wait for the next record. */
function process(run = true) {
  const steps: (() => void)[] = []
  const add = async (step: () => void) => {
    steps.push(step)
    if (run) step()
    else await new Promise(() => {})
  }
  return { ...createModelWindows(memory.windows, add), steps }
}

const modelOf = (more: Partial<AskedModel> = {}): AskedModel => ({
  key: { provider: 'near', address: 'http://127.0.0.1:9/v1', model: 'm' },
  usual: 32_768,
  isConfigured: true,
  ...more,
})
const configured = (value: number) => ({ known: { value, origin: { name: '[providers.models.near]' } } })
const reply = (inputTokens: number, more: object = {}) => ({
  usage: { inputTokens, outputTokens: 5, ...more },
  model: 'm',
  provider: 'near',
})

describe('the window', () => {
  test('that is configured counts, and a refusal that names a smaller one beats it, once', () => {
    const window = process().of([modelOf(configured(16_384))])
    expect(window.tokens()).toBe(16_384)
    expect(window.refused(9000, { provider: 'near', windowTokens: 8192, sentTokens: 9000 })).toBe(
      'the window of near/m is 8,192 tokens and not 16,384, says its server; to set it, write context_tokens = 8192 under [providers.models.near]',
    )
    expect(window.refused(9000, { provider: 'near', windowTokens: 8192, sentTokens: 9000 })).toBeUndefined()
    expect(window.tokens()).toBe(8192)
  })

  test('that another process of the home learnt is known without a refusal, until something else is configured', () => {
    process().of([modelOf()]).refused(9000, { windowTokens: 8192 })
    expect(process().of([modelOf()]).tokens()).toBe(8192)
    expect(
      process()
        .of([modelOf(configured(4096))])
        .tokens(),
    ).toBe(4096)
    expect(
      process()
        .of([modelOf(configured(100_000))])
        .tokens(),
    ).toBe(100_000)
    expect(
      process()
        .of([modelOf({ key: { ...modelOf().key, model: 'other' } })])
        .tokens(),
    ).toBe(32_768)
    expect(
      process()
        .of([modelOf({ key: { ...modelOf().key, address: 'http://127.0.0.1:10/v1' } })])
        .tokens(),
    ).toBe(32_768)
    clock.now += 8 * 86_400_000
    expect(process().of([modelOf()]).tokens()).toBe(32_768)
  })

  test('that a process learns while another one runs is known to its next run', async () => {
    const [one, other] = [process().of([modelOf()]), process().of([modelOf()])]
    one.refused(9000, { windowTokens: 8192 })
    await other.ready(never)
    expect(other.tokens()).toBe(8192)
  })

  test('without a number is less than what was refused, and falls faster the second time', () => {
    const window = process().of([modelOf()])
    expect(window.refused(20_000, {})).toContain('is 15,000 tokens and not 32,768, because a longer request was refused')
    window.refused(14_000, {})
    expect(window.tokens()).toBe(7000)
    for (let n = 0; n < 9; n++) window.refused(window.tokens(), {})
    expect(window.tokens()).toBe(1024)
  })

  test('that was concluded from a refusal rises when a longer request is accepted, and one that was named never does', () => {
    const window = process().of([modelOf()])
    window.refused(20_000, {})
    window.replied(18_000, reply(17_000))
    expect(window.tokens()).toBe(17_000)
    window.refused(17_000, { windowTokens: 8000 })
    window.replied(9000, reply(9000))
    window.refused(9000, { windowTokens: 20_000, sentTokens: 9000 })
    expect(window.tokens()).toBe(8000)
  })

  test('is never smaller than any model has, whatever a server says', () => {
    const window = process().of([modelOf()])
    window.refused(9000, { windowTokens: 20 })
    expect(window.tokens()).toBe(1024)
    expect(window.refused(9000, { windowTokens: 20 })).toBeUndefined()
  })

  test('of several models is the smallest, and each learns from its own replies and refusals', () => {
    const far = modelOf({ key: { provider: 'far', address: '', model: 'big' }, ...configured(200_000) })
    const window = process().of([far, modelOf({ usual: 50_000 })])
    expect(window.tokens()).toBe(50_000)
    expect(window.refused(60_000, { provider: 'far', windowTokens: 40_000 })).toContain('far/big is 40,000 tokens and not 200,000')
    expect(window.tokens()).toBe(40_000)
    window.replied(1000, { ...reply(2000), provider: 'far' })
    expect(window.scale()).toBe(2)
    expect(window.refused(60_000, { provider: 'nobody', windowTokens: 2000 })).toBeUndefined()
    expect(window.tokens()).toBe(40_000)
  })

  test('of a caller without settings is learnt, and nothing of it is kept', () => {
    const one = process()
    const own = modelOf({ isConfigured: false, usual: 128_000 })
    expect(one.of([own]).refused(9000, { windowTokens: 8192 })).not.toContain('context_tokens')
    expect([one.of([own]).tokens(), process().of([own]).tokens(), one.steps.length]).toEqual([8192, 128_000, 0])
  })
})

describe('the tokens of a text', () => {
  const text = 'A turn is one run. '.repeat(400)

  test('rise at once with what the server counts, and fall slowly', () => {
    const window = process().of([modelOf()])
    const plain = estimate(window, text)
    window.replied(plain, reply(plain * 2))
    expect(estimate(window, text)).toBe(plain * 2)
    window.replied(plain * 2, reply(plain))
    expect(estimate(window, text)).toBeWithin(plain * 1.9, plain * 2)
  })

  test('stay within bounds when a server lies, and estimates, nothing and few tokens teach nothing', () => {
    const window = process().of([modelOf()])
    const plain = estimate(window, text)
    for (const usage of [reply(0), reply(-5), reply(Number.NaN), reply(9e9, { estimated: true }), reply(200)]) window.replied(plain, usage)
    window.replied(100, reply(5000))
    expect(estimate(window, text)).toBe(plain)
    window.replied(plain, reply(1e12))
    expect(estimate(window, text)).toBe(plain * 4)
    for (let n = 0; n < 500; n++) window.replied(estimate(window, text), reply(300))
    expect(estimate(window, text)).toBeWithin(plain * 0.75 - 1, plain * 0.76)
  })

  test('that a refusal counted never fall below that again', () => {
    const window = process().of([modelOf()])
    const plain = estimate(window, text)
    window.refused(plain, { windowTokens: 32_768, sentTokens: plain * 3 })
    for (let n = 0; n < 500; n++) window.replied(estimate(window, text), reply(300))
    expect(estimate(window, text)).toBe(plain * 3)
  })

  test('explain a refusal by a window that was known already', () => {
    const window = process().of([modelOf(configured(8192))])
    expect(window.refused(6000, { windowTokens: 8192 })).toBeUndefined()
    expect(window.scale()).toBeCloseTo(8192 / 6000)
  })

  test('are known to the next process, and bounded when the row is not', () => {
    process().of([modelOf()]).replied(1000, reply(3000))
    expect(process().of([modelOf()]).scale()).toBe(3)
    memory.windows.put(modelOf().key, { factor: 1e9 })
    expect(process().of([modelOf()]).scale()).toBe(4)
  })
})

describe('what is written', () => {
  test('is nothing in a turn that learns nothing new', async () => {
    const one = process()
    const window = one.of([modelOf()])
    const text = 'A turn is one run. '.repeat(2000)
    for (let n = 0; n < 100; n++) {
      await window.ready(never)
      window.replied(estimate(window, text), reply(10_000 + (n % 5) * 100))
    }
    expect(one.steps).toEqual([])
    window.replied(estimate(window, text), reply(15_000))
    window.replied(estimate(window, text), reply(15_200))
    expect(one.steps).toHaveLength(1)
  })

  test('goes to disk at the end when the record had no time for it', async () => {
    const one = process(false)
    const window = one.of([modelOf()])
    window.replied(1000, reply(3000))
    window.refused(9000, { windowTokens: 8192 })
    await window.ready(never)
    expect([window.scale(), window.tokens()]).toEqual([3, 8192])
    expect(process().of([modelOf()]).tokens()).toBe(32_768)
    memory.close()
    one.flush()
    open()
    expect(process().of([modelOf()]).tokens()).toBe(32_768)
    const two = process(false)
    two.of([modelOf()]).refused(9000, { windowTokens: 8192 })
    two.of([modelOf()]).replied(1000, reply(3000))
    two.flush()
    const next = process().of([modelOf()])
    expect([next.scale(), next.tokens()]).toEqual([3, 8192])
  })
})

describe('a server', () => {
  test('is asked once a home: the next process knows the answer, also that there is none', async () => {
    const asked = { count: 0 }
    const asking = (tokens?: number) =>
      modelOf({
        ask: async () => {
          asked.count += 1
          return { isServer: true, ...(tokens === undefined ? {} : { tokens, isLoaded: true }) }
        },
      })
    const window = process().of([asking(8192)])
    await Promise.all([window.ready(never), window.ready(never)])
    expect([window.tokens(), asked.count]).toEqual([8192, 1])
    await process().of([asking()]).ready(never)
    expect(asked.count).toBe(1)
    const other = { ...asking(), key: { ...modelOf().key, model: 'other' } }
    for (let n = 0; n < 3; n++) await process().of([other]).ready(never)
    expect(asked.count).toBe(2)
  })

  test('is not asked for a window that is configured, or that a refusal taught', async () => {
    const asked: string[] = []
    const ask = async () => ({ isServer: asked.push('again') > 0 })
    await process()
      .of([modelOf({ ask, ...configured(8192) })])
      .ready(never)
    process().of([modelOf()]).refused(9000, { windowTokens: 8192 })
    await process()
      .of([modelOf({ ask })])
      .ready(never)
    expect(asked).toEqual([])
  })

  test('that is silent is not asked again by this process; one that had not loaded the model is', async () => {
    const answers = [
      { isServer: true, tokens: 4096, isLoaded: false },
      { isServer: true, tokens: 16_384, isLoaded: true },
    ]
    const asked: string[] = []
    const one = process()
    const loading = modelOf({
      ask: async () => {
        asked.push('loading')
        return answers.shift() ?? { isServer: false }
      },
    })
    const seen: number[] = []
    for (let n = 0; n < 4; n++) {
      const window = one.of([loading])
      await window.ready(never)
      seen.push(window.tokens())
    }
    expect([seen, asked.length]).toEqual([[4096, 16_384, 16_384, 16_384], 2])
    const silent = modelOf({ key: { ...modelOf().key, model: 'silent' }, ask: async () => ({ isServer: asked.push('silent') < 0 }) })
    for (let n = 0; n < 3; n++) await one.of([silent]).ready(never)
    expect(asked.filter((each) => each === 'silent')).toHaveLength(1)
  })
})

/** Sends messages as a product does that trims: never more than seven tenths of the window, and a refused request twice more, smaller. */
async function send(provider: Provider, window: ModelWindow, texts: string[]): Promise<'answered' | 'refused'> {
  const sizeOf = () => estimate(window, JSON.stringify([question(texts).systemPrompt, texts]))
  for (let tries = 0; tries < 3; tries++) {
    if (sizeOf() > window.tokens() * 0.7) while (texts.length > 1 && sizeOf() > window.tokens() * 0.4) texts.shift()
    const estimated = sizeOf()
    try {
      const response = await ask(provider, question(texts))
      window.replied(estimated, response)
      return 'answered'
    } catch (error) {
      if (!(error instanceof ProviderFailure) || error.code !== 'context_length') throw error
      window.refused(estimated, error.detail)
    }
  }
  return 'refused'
}

const question = (texts: readonly string[]): ChatRequest => ({
  systemPrompt: 'Be brief. '.repeat(20),
  messages: texts.map((content) => ({ role: 'user', content })),
  tools: [],
  model: '',
})

/** Kinds of text that a server counts in very different ways. */
const texts = fc.oneof(
  fc.nat({ max: 300 }).map((n) => 'export const size = read(path) // a line of code\n'.repeat(n)),
  fc.nat({ max: 3000 }).map((n) => '大きさは分からない'.repeat(n / 4)),
  fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.nat({ max: 3000 }).map((n) => 'x'.repeat(n)),
)

async function withServer(
  options: WindowServerOptions,
  body: (at: {
    readonly turn: (text: string) => Promise<string>
    readonly window: ModelWindow
    readonly server: ReturnType<typeof startWindowServer>
  }) => Promise<void>,
) {
  using server = startWindowServer(options)
  const window = process().of([modelOf({ key: { ...modelOf().key, address: server.url } })])
  const provider = createWired({ name: 'near', config: wireConfig('openai-compatible', server.url), deps: testDeps() })
  const history: string[] = []
  await body({
    server,
    window,
    turn(text) {
      history.push(text)
      return send(provider, window, history)
    },
  })
}

const lies: { readonly [name: string]: NonNullable<WindowServerOptions['usage']> } = {
  true: (tokens) => tokens,
  uncached: (tokens, n) => (n % 2 === 0 ? tokens : Math.floor(tokens / 10)),
  nothing: () => 0,
  none: () => undefined,
  tenfold: (tokens) => tokens * 10,
  random: (tokens, n) => (tokens * ((n * 7) % 13)) / 3,
}

describe('against a real server', () => {
  test.each(Object.keys(lies))('that reports %s usage, no request is refused once the window is known', async (lie) => {
    const wordings = ['openai', 'anthropic', 'llamaCpp', 'lmStudio', 'openrouter', 'stream'] as const satisfies Wording[]
    await fc.assert(
      fc.asyncProperty(
        fc.array(texts, { minLength: 20, maxLength: 40 }),
        fc.constantFrom(...wordings),
        fc.constantFrom(8192, 16_000, 30_000),
        async (turns, wording, size) =>
          withServer({ window: size, wording, usage: lies[lie] ?? (() => 1) }, async ({ turn, window, server }) => {
            for (const text of turns) expect(await turn(text)).toBe('answered')
            const refused = server.requests.filter(({ outcome }) => outcome === 'refused')
            expect(refused.length).toBeLessThanOrEqual(1)
            if (refused.length > 0) expect(window.tokens()).toBe(size)
          }),
      ),
      { numRuns: repetitions({ fast: 2, deep: 50 }) },
    )
  })

  test('that names no number, the window is found within two more requests', async () => {
    await withServer({ window: 8192, wording: 'plain413' }, async ({ turn, window, server }) => {
      for (let n = 0; n < 30; n++) expect(await turn('words and words. '.repeat(200))).toBe('answered')
      expect(server.requests.filter(({ outcome }) => outcome === 'refused').length).toBeWithin(1, 3)
      expect(window.tokens()).toBeLessThanOrEqual(24_576)
    })
  })

  test('whose window shrinks between calls, each new window is learnt once', async () => {
    await withServer({ window: 30_000 }, async ({ turn, window, server }) => {
      for (const size of [30_000, 16_000, 8000, 20_000]) {
        server.setWindow(size)
        for (let n = 0; n < 20; n++) expect(await turn('words and words. '.repeat(300))).toBe('answered')
      }
      expect(window.tokens()).toBe(8000)
      expect(server.requests.filter(({ outcome }) => outcome === 'refused').length).toBeLessThanOrEqual(2)
    })
  })
})

test('a limit of the answer leaves room for the prompt, and one that fits is sent as it is', async () => {
  using server = startWindowServer({ window: 8192 })
  const window = process().of([modelOf(configured(8192))])
  const config = wireConfig('openai-compatible', server.url, { maxOutputTokens: 4000 })
  const provider = withAnswerRoom(createWired({ name: 'near', config, deps: testDeps() }), window)
  const long = 'words and words. '.repeat(1300)
  for (const text of ['short', long]) await ask(provider, question([text]))
  expect(server.requests.map(({ outcome }) => outcome)).toEqual(['answered', 'answered'])
  const [short, cut] = server.requests
  expect(short?.answer).toBe(4000)
  expect(cut?.answer).toBeWithin(500, 4000)
  expect((cut?.answer ?? 0) + (cut?.tokens ?? 0)).toBeLessThanOrEqual(8192)
  await ask(provider, { ...question(['short']), maxOutputTokens: 100_000 }).catch(() => {})
  expect(server.requests.at(-1)?.answer).toBeLessThan(8192)
})

describe('the models that may answer', () => {
  const near = '[providers.models.near]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
  const far = '[providers.models.far]\nkind = "openai"\nmodel = "gpt-4"\n'
  const named = (name: string, contextTokens = 32_768): Provider => ({
    ...modelCallProvider(async function* () {}),
    name,
    capabilities: () => ({ streaming: true, tools: true, thinking: true, contextTokens }),
  })
  const modelsOf = (text: string, provider: Provider) =>
    askedModels(
      { config: configOf({ user: text }), context: createHostContext({ env: { BRAIDCLAW_HOME: folder }, channels: [], say: () => {} }) },
      provider,
    )

  test('are one for a provider, with its address, and a local server can be asked', async () => {
    const [model] = await modelsOf(`default_provider = "near"\ndefault_model = "other"\n${near}`, named('near'))
    expect(model).toMatchObject({
      key: { provider: 'near', address: 'http://127.0.0.1:9/v1', model: 'other' },
      usual: 32_768,
      known: undefined,
    })
    expect(model?.ask).toBeFunction()
    const [own] = await modelsOf(`default_provider = "far"\ndefault_model = "m"\n${far}base_url = "http://127.0.0.1:9/v1"\n`, named('far'))
    expect([own?.usual, typeof own?.ask]).toEqual([128_000, 'function'])
  })

  test('of a vendor are known from the table, and nobody asks its server', async () => {
    const [model] = await modelsOf(`default_provider = "far"\ndefault_model = "gpt-4"\n${far}`, named('far'))
    expect(model).toMatchObject({ key: { provider: 'far', model: 'gpt-4' }, usual: 128_000, known: { value: 8192 } })
    const router = near.replace('http://127.0.0.1:9/v1', 'https://openrouter.ai/api/v1')
    for (const each of [model, ...(await modelsOf(`default_provider = "near"\ndefault_model = "m"\n${router}`, named('near')))])
      expect(each).not.toHaveProperty('ask')
  })

  test('are all that stand behind a fallback and a router', async () => {
    const both = `default_provider = "both"\n${near}${far}[providers.models.both]\nkind = "router"\ndefault = "safe"\nroutes = { hard = "far", none = "local" }\n[providers.models.safe]\nkind = "reliable"\nproviders = ["near", "far"]\n[providers.models.local]\nkind = "mock"\n`
    const models = await modelsOf(both, named('both'))
    expect(models.map(({ key }) => `${key.provider}/${key.model}`)).toEqual(['near/m', 'far/gpt-4', 'local/local'])
    expect(process().of(models).tokens()).toBe(8192)
  })

  test('are the provider itself when it is not configured over the network: a caller without a window has 128,000 tokens', async () => {
    const text = 'default_provider = "local"\n[providers.models.local]\nkind = "mock"\n'
    expect(
      process()
        .of(await modelsOf(text, named('local', 32_768)))
        .tokens(),
    ).toBe(32_768)
    const own = await modelsOf(
      text,
      modelCallProvider(async function* () {}),
    )
    expect([process().of(own).tokens(), own[0]?.isConfigured]).toEqual([128_000, false])
  })
})
