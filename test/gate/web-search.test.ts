/** The tool web_search through the real executable: engines on loopback with their wire format, the gate before them, keys that stay hidden. */

import { expect, test } from 'bun:test'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'

type Seen = { readonly path: string; readonly headers: Headers; readonly body: string }

/** Answers each engine's request as its documentation shows. */
function startEngines() {
  const seen: Seen[] = []
  const hit = (text: string) => ({ title: 'A <strong>title</strong>', url: 'https://example.org/a', [text]: `Some\n ${text}`, score: 1 })
  const answers: { readonly [path: string]: object } = {
    '/brave': { type: 'search', web: { type: 'search', results: [hit('description'), hit('description')] } },
    '/tavily': { query: 'q', results: [hit('content')] },
    '/exa': { requestId: 'x', results: [hit('text')] },
    '/searx/search': { query: 'q', results: [hit('content')] },
    '/empty': { results: [] },
    '/odd': { results: { no: 'list' } },
    '/refused': { message: 'bad key KEY-of-the-test-1234567890' },
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      seen.push({ path: pathname + search, headers: request.headers, body: await request.text() })
      return Response.json(answers[pathname] ?? {}, { status: pathname === '/refused' ? 401 : 200 })
    },
  })
  return {
    seen,
    port: server.port,
    at: (path: string) => `http://127.0.0.1:${server.port}${path}`,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

const KEY = 'KEY-of-the-test-1234567890'

function config(home: Nest, port: number | undefined, tools: string, security = ''): void {
  const net = `allowed_domains = ["127.0.0.1"]\nallowed_ports = [${port}]\n${security}`
  home.config(`${minimumConfig.replace('[security]\n', `[security]\n${net}`).replace(/tools_allow = .*\n/, '')}\n[tools]\n${tools}\n`)
}

const search = (home: Nest, env: { readonly [name: string]: string }, args: object = { query: 'bun & "node"', count: 3 }) =>
  home.run(['tool', 'run', 'web_search', '--json', JSON.stringify(args)], { env })

test('without a key or an address the tool is not there, nor when it is switched off', async () => {
  using home = nest()
  using engines = startEngines()
  config(home, engines.port, '')
  expect((await search(home, {})).stdout + (await search(home, {})).stderr).toContain('web_search')
  expect((await search(home, {})).code).not.toBe(0)
  expect((await home.run(['tool', 'list'])).stdout).not.toContain('web_search')
  config(home, engines.port, 'web_search = "off"')
  expect((await home.run(['tool', 'list'], { env: { BRAVE_API_KEY: KEY } })).stdout).not.toContain('web_search')
  config(home, engines.port, 'web_search = "exa"')
  expect((await home.run(['tool', 'list'], { env: { BRAVE_API_KEY: KEY } })).stdout).not.toContain('web_search')
  expect(engines.seen).toEqual([])
})

test('a host that is not listed is asked for, and a POST to one that is; nobody is there, so nothing is sent', async () => {
  using home = nest()
  using engines = startEngines()
  home.config(minimumConfig.replace(/tools_allow = .*\n/, ''))
  const unlisted = await search(home, { BRAVE_API_KEY: KEY, WEB_SEARCH_URL: 'https://search.example.org/brave' })
  expect([unlisted.code === 0, unlisted.stdout + unlisted.stderr]).toEqual([false, expect.stringContaining('search.example.org')])
  config(home, engines.port, '')
  expect((await search(home, { TAVILY_API_KEY: KEY, WEB_SEARCH_URL: engines.at('/tavily') })).code).not.toBe(0)
  expect(engines.seen).toEqual([])
})

test.each([
  ['brave', '/brave', { BRAVE_API_KEY: KEY }, 'x-subscription-token', KEY],
  ['tavily', '/tavily', { TAVILY_API_KEY: KEY }, 'authorization', `Bearer ${KEY}`],
  ['exa', '/exa', { EXA_API_KEY: KEY }, 'x-api-key', KEY],
  ['searxng', '/searx/search', {}, 'accept', 'application/json'],
] as const)('%s is asked in its own form, and its hits are lines', async (name, path, key, header, value) => {
  using home = nest()
  using engines = startEngines()
  const env: { readonly [name: string]: string } =
    name === 'searxng' ? { SEARXNG_URL: engines.at('/searx') } : { ...key, WEB_SEARCH_URL: engines.at(path) }
  config(home, engines.port, '', 'approve_all_medium = true\n')
  const { code, stdout } = await search(home, env)
  expect(stdout).toContain('1. A title\n   https://example.org/a\n   Some ')
  expect([code, engines.seen.length]).toEqual([0, 1])
  const [asked] = engines.seen
  expect(asked?.headers.get(header)).toBe(value)
  const said = asked?.body ? JSON.parse(asked.body).query : new URL(asked?.path ?? '', 'http://x').searchParams.get('q')
  expect(said).toBe('bun & "node"')
  expect(`${asked?.path}${stdout}`).not.toContain(KEY)
})

test('what an engine answers besides hits is said, without the key; nothing found is said too', async () => {
  using home = nest()
  using engines = startEngines()
  for (const [path, words] of [
    ['/refused', 'brave answered 401'],
    ['/odd', 'brave answered without a list of hits'],
  ] as const) {
    config(home, engines.port, 'web_search = "brave"')
    const { code, stdout, stderr } = await search(home, { BRAVE_API_KEY: KEY, WEB_SEARCH_URL: engines.at(path) })
    expect([code === 0, stdout + stderr]).toEqual([false, expect.stringContaining(words)])
    expect(stdout + stderr).not.toContain(KEY)
  }
  config(home, engines.port, '')
  const empty = { SEARXNG_URL: engines.at('/x'), WEB_SEARCH_URL: engines.at('/empty') }
  expect((await search(home, empty, { query: 'nothing' })).stdout).toContain('nothing found for nothing')
  expect((await search(home, empty, { query: 'a', count: 11 })).code).not.toBe(0)
})

test('the model gets the tool with a key, and the hits as content of others', async () => {
  using home = nest()
  using engines = startEngines()
  config(home, engines.port, '')
  const fixture = home.fixture([
    { tool_calls: [{ name: 'web_search', arguments: { query: 'x' } }] },
    { text: 'Found: {{last_tool_result}}' },
  ])
  const { code, stdout } = await home.run(['agent', '-m', 'search', '--output-format', 'stream-json'], {
    env: { BRAVE_API_KEY: KEY, WEB_SEARCH_URL: engines.at('/brave'), BRAIDCLAW_MOCK_FIXTURE: fixture },
  })
  expect([code, stdout]).toEqual([0, expect.stringContaining('A title')])
  expect((await home.run(['run', 'show', 'last', '--json'])).stdout).toContain('reads_untrusted')
})
