/** Secrets planted wherever a session meets them, a broad session, then a search of every file and every stream it left behind. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Invocation, minimumConfig, type Nest, nest, type Result } from './support/cli.ts'
import { filesBelow, findBelow, findIn, type Secret, spellings } from './support/secrets.ts'

const random = () => crypto.getRandomValues(new Uint8Array(9)).toBase64()

/** Quotes, backslashes, plus, slash and percent: every spelling differs. */
const apiKey = `sk-"A\\b/c+d=e%f ${random()}`
const named = `pass-${random()}/x`
const usual = `ghp_${random()}${random()}`
const secrets: readonly Secret[] = [
  { name: 'the api_key_env of a provider', value: apiKey },
  { name: 'an api_key_env with an unusual name', value: named },
  { name: 'a variable with a usual name', value: usual },
]
const environment = { OPENAI_API_KEY: apiKey, OTHER_PASS: named, GITHUB_TOKEN: usual }

const planted: { readonly [path: string]: string } = {
  'braidclaw-workspace/.env.test': `OPENAI_API_KEY=${apiKey}\nOTHER=${named}\nGITHUB_TOKEN=${usual}\n`,
  'braidclaw-workspace/key.json': JSON.stringify({ key: apiKey, nested: JSON.stringify({ usual, named, apiKey }) }),
  'braidclaw-workspace/url.txt': `https://host/?key=${encodeURIComponent(apiKey)}&p=${encodeURIComponent(named)}&t=${usual}\n`,
  'braidclaw-workspace/base64.txt': ['', 'x', 'xy']
    .map((before) => Buffer.from(`${before}${apiKey} ${named} ${usual}`).toString('base64'))
    .join('\n'),
}

/** What was printed, by what was run. */
const streams: { readonly what: string; readonly text: string }[] = []
const state: { at?: Nest; vendor?: ReturnType<typeof vendor>; receiptKey?: string } = {}

function home(): Nest {
  if (!state.at) throw new Error('no home yet')
  return state.at
}

async function run(args: readonly string[], invocation: Invocation = {}): Promise<Result> {
  const result = await home().run(args, { ...invocation, env: { ...environment, ...invocation.env } })
  keep(args.join(' '), result)
  return result
}

function keep(args: string, { stdout, stderr }: Result): void {
  const what = secrets.reduce((text, { name, value }) => text.replaceAll(value, `<${name}>`), args)
  streams.push({ what: `stdout of ${what}`, text: stdout }, { what: `stderr of ${what}`, text: stderr })
}

const turn = (message: string, responses: readonly object[], args: readonly string[] = [], env: { [name: string]: string } = {}) =>
  run(['agent', '-m', message, '--approve-all-medium', ...args], { env: { ...env, BRAIDCLAW_MOCK_FIXTURE: home().fixture(responses) } })

const call = (name: string, input: object | string) => ({ tool_calls: [{ name, arguments: input }] })
const answer = { text: 'It says: {{last_tool_result}}', chunks: 9 }

/** A model far away that repeats the key it was given: in an error, in pieces of text, in a call. What it was asked is kept. */
function vendor() {
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      asked.push(await request.text())
      const key = request.headers.get('authorization')?.replace('Bearer ', '') ?? ''
      if (request.url.includes('/refuse/'))
        return Response.json({ error: { message: `Incorrect API key provided: ${key}` } }, { status: 401 })
      if (request.url.includes('/html/')) return new Response(`<html>${key}</html>`, { headers: { 'content-type': 'text/html' } })
      return new Response(asked.length % 2 === 1 ? callWith(key) : textWith(key), { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, asked, stop: () => server.stop(true) }
}

const chunk = (choice: object) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`

/** A few characters at a time, so that no piece holds the key. */
function textWith(key: string): string {
  const pieces = `your key is ${key}, is it not?`.match(/[^]{1,5}/gu) ?? []
  return `${pieces.map((content) => chunk({ delta: { content } })).join('')}${chunk({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`
}

function callWith(key: string): string {
  const wanted = {
    index: 0,
    id: `call-${key}`,
    type: 'function',
    function: { name: 'file_read', arguments: JSON.stringify({ path: `${key}.txt` }) },
  }
  return `${chunk({ delta: { tool_calls: [wanted] } })}${chunk({ delta: {}, finish_reason: 'tool_calls' })}data: [DONE]\n\n`
}

function configure(): void {
  const url = state.vendor?.url ?? ''
  const remote = (name: string, path: string, key: string) =>
    `\n[providers.models.${name}]\nkind = "openai-compatible"\nbase_url = "${url}/${path}/v1"\nmodel = "m"\napi_key_env = "${key}"\n`
  const base = minimumConfig.replace(/tools_allow = .*\n/, '').replace(/\[providers.models.openai_compatible\][^[]*/, '')
  home().config(
    base + remote('far', 'ok', 'OPENAI_API_KEY') + remote('refusing', 'refuse', 'OTHER_PASS') + remote('html', 'html', 'GITHUB_TOKEN'),
  )
}

beforeAll(async () => {
  state.at = nest()
  state.vendor = vendor()
  configure()
  for (const [path, text] of Object.entries(planted)) writeFileSync(join(home().home, path), text)
  await session()
}, 60_000)
afterAll(() => {
  state.vendor?.stop()
  state.at?.[Symbol.dispose]()
})

async function session(): Promise<void> {
  const formats = ['text', 'json', 'stream-json'].map((format) => ['--output-format', format])
  await everyTool(['--output-format', 'text'], { BRAIDCLAW_LOG: 'json:debug' })
  await everyTool(['--output-format', 'json'], { BRAIDCLAW_LOG: 'debug' })
  await everyTool(['--output-format', 'stream-json', '--autonomy', 'full'])
  for (const model of ['far/m', 'refusing/m', 'html/m'])
    for (const format of formats) await run(['agent', '-m', 'hello', '--model', model, ...format], { env: { BRAIDCLAW_LOG: 'json:debug' } })
  for (const name of ['far', 'refusing', 'html']) await run(['provider', 'test', name])
  await run(['agent', '--approve-all-medium'], {
    stdin: `stdin knows ${apiKey} too`,
    env: { BRAIDCLAW_MOCK_FIXTURE: home().fixture([answer]) },
  })
  await run(['tool', 'run', 'file_read', '--json', JSON.stringify({ path: '.env.test' })])
  await run(['tool', 'run', 'file_read', '--json', JSON.stringify({ path: `${usual}.txt` })])
  for (const output of ['text', 'json']) {
    await run(['policy', 'explain', '--output', output, '--', 'echo', usual])
    await run(['policy', 'explain', '--output', output, '--', 'rm', '-rf', named])
    await run(['policy', 'explain', '--output', output, '--tool', 'file_read', '--json', JSON.stringify({ path: apiKey })])
  }
  await run(['estop', '--reason', `because of ${usual}`])
  await turn('stopped', [call('time', {}), answer])
  await run(['estop', '--clear'])
  await mistakes()
  await inTerminal()
  await crash()
  await lookAround()
}

/** Every way in which a value can travel through a tool call. */
async function everyTool(format: readonly string[], env: { [name: string]: string } = {}): Promise<void> {
  const calls = [
    ...Object.keys(planted).map((path) => call('file_read', { path: path.replace('braidclaw-workspace/', '') })),
    call('search', { pattern: 'OPENAI|key' }),
    call('search', { pattern: usual }),
    call('shell', { command: 'cat .env.test key.json url.txt base64.txt' }),
    call('shell', { command: `echo '${usual}'` }),
    call('shell', { command: 'env' }),
    call('shell', { command: 'cat /proc/self/environ' }),
    call('shell', { command: `rm -rf '${named}'` }),
    call('http', { url: `http://127.0.0.1/?key=${encodeURIComponent(apiKey)}` }),
    call('http', { url: 'http://10.0.0.1/', method: 'POST', body: apiKey }),
    call('file_write', { path: `written/${usual}.txt`, content: `the key is ${apiKey}` }),
    call('file_edit', { path: '.env.test', old: named, new: named }),
    call('memory_search', { query: usual }),
    call('file_read', `{"path": "${usual}`),
    call(`tool_${usual}`, { [usual]: named }),
    { tool_calls: [{ id: `id-${usual}`, name: 'time', arguments: {} }] },
  ]
  const often = ['--max-turns', '40']
  await turn(`what do you know of ${apiKey}?`, [...calls, { ...answer, thinking: `hm, ${named}` }], [...format, ...often], env)
  if (format.includes('full')) for (const one of calls) await turn(`only ${usual}`, [one, answer], format, env)
  await turn('say it', [{ text: `in one piece ${apiKey} and ${named} and ${usual}` }], format, env)
  await turn('say it', [{ text: `in pieces ${apiKey} and ${named} and ${usual}`, chunks: 60 }], format, env)
}

/** What is said of a wrong command line or configuration repeats some of it. */
async function mistakes(): Promise<void> {
  await run(['agent', `--${usual}`])
  await run([usual])
  await run(['memory', 'search', named])
  await run(['memory', 'show', usual])
  await run(['agent', '-m', 'x', '--resume', usual])
  await run(['agent', '-m', 'x', '--model', `far/${usual}`, '--max-turns', usual])
  await run(['tool', 'run', usual, '--json', named])
  await run(['receipt', 'verify', '--against', usual])
  await run(['provider', 'test', usual])
  const good = readFileSync(join(home().home, '.braidclaw/config.toml'), 'utf8')
  for (const line of [
    `api_key = ${JSON.stringify(apiKey)}`,
    `default_model = [${JSON.stringify(usual)}]`,
    `x = "${usual}`,
    `workspace_dir = "/no/${usual}"`,
  ]) {
    home().config(`${line}\n${good.replace(/^(default_model|workspace_dir) = .*$/m, '')}`)
    for (const command of [['config', 'validate'], ['config', 'validate', '--json'], ['config', 'show'], ['agent', '-m', 'x'], ['doctor']])
      await run(command)
  }
  home().config(good)
}

/** Typed into the conversation, and into the question for an approval. */
async function inTerminal(): Promise<void> {
  const fixture = home().fixture([call('file_write', { path: 'out.txt', content: apiKey }), answer])
  const result = await home().terminal(
    ['agent'],
    [
      ['> ', `my token is ${usual}\r`],
      ['[y/N', 'n\r'],
      ['It says', '/exit\r'],
    ],
    { env: { ...environment, BRAIDCLAW_MOCK_FIXTURE: fixture } },
  )
  // What is typed is echoed by the terminal itself; only what we print counts.
  keep('agent, in a terminal', { ...result, stdout: result.stdout.replaceAll(`my token is ${usual}`, '') })
}

/** Dies while a command runs; the next start closes the run and writes the receipt. */
async function crash(): Promise<void> {
  const fixture = home().fixture([call('shell', { command: `sleep 3 && echo '${usual}'` }), answer])
  const dying = home().start(['agent', '-m', `die with ${apiKey}`, '--approve-all-medium', '--output-format', 'stream-json'], {
    env: { ...environment, BRAIDCLAW_MOCK_FIXTURE: fixture, BRAIDCLAW_LOG: 'json:debug' },
  })
  await dying.says('tool started')
  process.kill(dying.pid, 'SIGKILL')
  keep('agent, killed', await dying.result)
  expect((await turn('after', [answer])).stderr).toContain('recovered after a crash')
}

async function lookAround(): Promise<void> {
  const commands = [
    ['config', 'show'],
    ['config', 'show', '--origin', '--json'],
    ['config', 'validate'],
    ['doctor'],
    ['doctor', '--json'],
    ['receipt', 'list', '--limit', '1000'],
    ['receipt', 'list', '--json', '--limit', '1000'],
    ['receipt', 'show', '1'],
    ['receipt', 'verify', '--deep', '--json'],
    ['receipt', 'anchor', '--json'],
    ['memory', 'list', '--limit', '1000'],
    ['memory', 'list', '--json', '--limit', '1000'],
    ['memory', 'show', 'last'],
    ['memory', 'search', 'key'],
    ['memory', 'search', '--json', '--limit', '1000', 'is'],
    ['memory', 'export'],
    ['tool', 'list', '--json'],
  ]
  for (const command of commands) for (const log of ['json:debug', 'debug']) await run(command, { env: { BRAIDCLAW_LOG: log } })
}

test('the search itself finds a secret in every spelling', () => {
  for (const { value } of secrets) {
    for (const [, text] of spellings(value)) expect(findIn('here', `before ${text} after`, secrets)).not.toEqual([])
    for (const before of ['', 'x', 'xy']) {
      const text = Buffer.from(`${before}${value} after`).toString('base64')
      expect(findIn('here', text, secrets)).not.toEqual([])
    }
  }
  for (const [path, text] of Object.entries(planted)) expect(findIn(path, text, secrets)).not.toEqual([])
})

test('the session was a broad one', async () => {
  const export_ = streams.findLast(({ what }) => what.startsWith('stdout of memory export'))?.text ?? ''
  expect(export_.split('\n').length).toBeGreaterThan(120)
  expect(export_).toContain('[redacted:OPENAI_API_KEY]')
  expect(export_).toContain('[redacted:OTHER_PASS]')
  expect(export_).toContain('[redacted:GITHUB_TOKEN]')
  for (const tool of ['file_read', 'search', 'shell', 'http', 'file_write', 'file_edit', 'memory_search'])
    expect(export_).toContain(`"name":"${tool}"`)
  expect((await run(['receipt', 'verify', '--deep'])).code).toBe(0)
})

test('no stream holds a secret', () => {
  expect(streams.flatMap(({ what, text }) => findIn(what, text, secrets))).toEqual([])
})

test('no file of the home or the workspace holds a secret, but those that were planted', () => {
  expect(findBelow(home().home, secrets, Object.keys(planted))).toEqual([])
})

test('the model is never sent a secret, except as the key it is given', () => {
  const asked = state.vendor?.asked ?? []
  expect(asked.length).toBeGreaterThan(10)
  expect(asked.flatMap((body, index) => findIn(`request ${index}`, body, secrets))).toEqual([])
})

test('the receipt key is in its own file alone', () => {
  const value = readFileSync(join(home().home, '.braidclaw/receipt.key'), 'utf8').trim()
  const key = [
    { name: 'the receipt key', value },
    { name: 'the receipt key, in bytes', value: Buffer.from(value, 'hex').toString('latin1') },
  ]
  expect(findBelow(home().home, key, ['.braidclaw/receipt.key'])).toEqual([])
  expect(streams.flatMap(({ what, text }) => findIn(what, text, key))).toEqual([])
})

describe('children', () => {
  test('a command gets an environment made from nothing', async () => {
    const { stdout } = await turn('go', [call('shell', { command: 'env' }), { text: '{{last_tool_result}}' }], ['--autonomy', 'full'])
    const names = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split('=')[0] ?? '')
    const known = ['PATH', 'HOME', 'LANG', 'TERM', 'NO_COLOR', 'PAGER', 'GIT_TERMINAL_PROMPT', 'TZ', 'PWD', 'SHLVL', '_', 'TMPDIR']
    expect(names).toContain('PATH')
    expect(names.filter((name) => !known.includes(name))).toEqual([])
  })

  test('a running command has no secret in /proc/PID/environ, nor in its arguments', async () => {
    const fixture = home().fixture([call('shell', { command: 'sleep 9.75' }), answer])
    const running = home().start(['agent', '-m', 'go', '--approve-all-medium'], {
      env: { ...environment, BRAIDCLAW_MOCK_FIXTURE: fixture },
    })
    const children = await until(() => processesWith('9.75', running.pid))
    const seen = children.flatMap((pid) => [`/proc/${pid}/environ`, `/proc/${pid}/cmdline`]).map((path) => readFileSync(path))
    process.kill(running.pid, 'SIGINT')
    await running.result
    expect(seen.length).toBeGreaterThan(1)
    expect(seen.flatMap((bytes) => findIn('/proc', bytes, secrets))).toEqual([])
  })
})

describe('permissions', () => {
  test('whatever the umask, what we keep is for its owner alone', async () => {
    using at = nest()
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('time', {}), { text: 'late' }]) }
    await at.run(['init'], { through })
    await at.run(['agent', '-m', 'go'], { through, env })
    await at.run(['trust'], { through })
    await at.run(['estop'], { through })
    const root = join(at.home, '.braidclaw')
    expect(readdirSync(root).sort()).toEqual(
      expect.arrayContaining(['ESTOP', 'config.toml', 'memory.sqlite', 'receipt.key', 'receipts.head', 'tool_receipts.log']),
    )
    const modes = ['.', ...readdirSync(root, { recursive: true, encoding: 'utf8' })].map((path) => [
      path,
      lstatSync(join(root, path)).mode & 0o077,
    ])
    expect(modes.filter(([, others]) => others !== 0)).toEqual([])
    expect(filesBelow(root).map((path) => lstatSync(join(root, path)).mode & 0o777)).toEqual(filesBelow(root).map(() => 0o600))
  })

  test('without init too, and in a home that is made on the way', async () => {
    using at = nest()
    const through = ['sh', '-c', 'umask 000; exec "$@"', 'sh']
    await at.run(['agent', '-m', 'What time is it?'], { through, env: { BRAIDCLAW_HOME: join(at.dir, 'deep/home') } })
    const root = join(at.dir, 'deep/home')
    expect(existsSync(join(root, 'receipt.key'))).toBe(true)
    expect(['.', ...readdirSync(root)].filter((path) => (lstatSync(join(root, path)).mode & 0o077) !== 0)).toEqual([])
  })

  test.each([0o644, 0o640, 0o604, 0o660])('a receipt key of mode %o is refused, by turns and by verify', async (mode) => {
    using at = nest()
    at.config(minimumConfig)
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('time', {}), { text: 'late' }]) }
    expect((await at.run(['agent', '-m', 'go'], { env })).code).toBe(0)
    const key = join(at.home, '.braidclaw/receipt.key')
    chmodSync(key, mode)
    for (const args of [
      ['agent', '-m', 'go'],
      ['receipt', 'verify'],
      ['receipt', 'anchor'],
    ]) {
      const { code, stdout, stderr } = await at.run(args, { env })
      expect({ args, code }).toEqual({ args, code: 9 })
      expect(stdout + stderr).toContain(`run: chmod 600 "${key}"`)
    }
    chmodSync(key, 0o600)
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })
})

/** Children, and theirs, whose command line has this word. */
function processesWith(word: string, not: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== not && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes(word) && read(`/proc/${pid}/environ`).includes(home().workspace))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

async function until<T>(look: () => T[]): Promise<T[]> {
  for (;;) {
    const found = look()
    if (found.length > 0) return found
    await Bun.sleep(10)
  }
}
