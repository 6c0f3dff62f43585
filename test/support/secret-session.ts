/** Runs a broad session that meets secrets in all possible places, and keeps everything that it prints. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Invocation, type Nest, nest, type Result } from './cli.ts'
import { apiKey, configurationFor, environment, named, planted, secrets, usual, vendor } from './planted.ts'
import { isDeep } from './tier.ts'

export type Session = Disposable & {
  readonly at: Nest
  /** The requests to the remote model. */
  readonly asked: readonly string[]
  /** The printed output, by command. */
  readonly streams: readonly { readonly what: string; readonly text: string }[]
  run(args: readonly string[], invocation?: Invocation): Promise<Result>
  turn(message: string, responses: readonly object[], args?: readonly string[], env?: { readonly [name: string]: string }): Promise<Result>
  keep(args: string, result: Result): void
}

export function openSession(): Session {
  const at = nest()
  const far = vendor()
  const streams: { what: string; text: string }[] = []
  at.config(configurationFor(far.url))
  for (const [path, text] of Object.entries(planted)) writeFileSync(join(at.home, path), text)

  const run: Session['run'] = async (args, invocation = {}) => {
    const result = await at.run(args, { ...invocation, env: { ...environment, ...invocation.env } })
    keep(args.join(' '), result)
    return result
  }

  const keep: Session['keep'] = (args, { stdout, stderr }) => {
    const what = secrets.reduce((text, { name, value }) => text.replaceAll(value, `<${name}>`), args)
    streams.push({ what: `stdout of ${what}`, text: stdout }, { what: `stderr of ${what}`, text: stderr })
  }

  const turn: Session['turn'] = (message, responses, args = [], env = {}) =>
    run(['agent', '-m', message, '--approve-all-medium', ...args], { env: { ...env, BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) } })

  const close = () => {
    far.stop()
    at[Symbol.dispose]()
  }
  return { at, asked: far.asked, streams, run, turn, keep, [Symbol.dispose]: close }
}

export const call = (name: string, input: object | string) => ({ tool_calls: [{ name, arguments: input }] })
export const answer = { text: 'It says: {{last_tool_result}}', chunks: 9 }

/** Lists what a session does, in order: every tool, every format, every error; the terminal, a crash, and all commands that inspect the results. */
export const steps: { readonly [name: string]: (session: Session) => Promise<void> } = {
  'every tool, with its log': (session) => everyTool(session, ['--output-format', 'text'], { BRAIDCLAW_LOG: 'json:debug' }),
  ...(isDeep && { 'every tool, as JSON': (session) => everyTool(session, ['--output-format', 'json'], { BRAIDCLAW_LOG: 'debug' }) }),
  'every tool, unasked': (session) => everyTool(session, unasked),
  'every tool in a turn of its own': async ({ turn }) => {
    for (const one of isDeep ? calls : calls.slice(-3)) await turn(`only ${usual}`, [one, answer], unasked)
  },
  'models that are far, refuse, or answer with a page': models,
  'words on the command line': commandLine,
  mistakes,
  'a terminal': inTerminal,
  'a crash': crash,
  'a look at everything': lookAround,
}

const unasked = ['--output-format', 'stream-json', '--autonomy', 'full']

async function models({ run }: Session): Promise<void> {
  const formats = (isDeep ? ['text', 'json', 'stream-json'] : ['stream-json']).map((format) => ['--output-format', format])
  for (const model of ['far/m', 'refusing/m', 'html/m'])
    for (const format of formats) await run(['agent', '-m', 'hello', '--model', model, ...format], { env: { BRAIDCLAW_LOG: 'json:debug' } })
  for (const name of ['far', 'refusing', 'html']) await run(['provider', 'test', name])
}

async function commandLine({ run, turn, at }: Session): Promise<void> {
  await run(['agent', '--approve-all-medium'], {
    stdin: `stdin knows ${apiKey} too`,
    env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([answer]) },
  })
  await run(['tool', 'run', 'file_read', '--json', JSON.stringify({ path: '.env.test' })])
  await run(['tool', 'run', 'file_read', '--json', JSON.stringify({ path: `${usual}.txt` })])
  for (const output of [[], ['--json']]) {
    await run(['policy', 'explain', ...output, '--', 'echo', usual])
    await run(['policy', 'explain', ...output, '--', 'rm', '-rf', named])
    await run(['policy', 'explain', ...output, '--tool', 'file_read', '--args', JSON.stringify({ path: apiKey })])
  }
  await run(['estop', '--reason', `because of ${usual}`])
  await turn('stopped', [call('time', {}), answer])
  await run(['estop', '--clear'])
}

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

/** Passes a value through a tool call in every way. */
async function everyTool({ turn }: Session, format: readonly string[], env: { readonly [name: string]: string } = {}): Promise<void> {
  const often = ['--max-turns', '40']
  await turn(`what do you know of ${apiKey}?`, [...calls, { ...answer, thinking: `hm, ${named}` }], [...format, ...often], env)
  await turn('say it', [{ text: `in one piece ${apiKey} and ${named} and ${usual}` }], format, env)
  await turn('say it', [{ text: `in pieces ${apiKey} and ${named} and ${usual}`, chunks: 60 }], format, env)
}

/** Provokes error messages that repeat a part of a wrong command line or configuration. */
async function mistakes({ run, at }: Session): Promise<void> {
  await run(['agent', `--${usual}`])
  await run([usual])
  await run(['memory', 'search', named])
  await run(['memory', 'show', usual])
  await run(['agent', '-m', 'x', '--resume', usual])
  await run(['agent', '-m', 'x', '--model', `far/${usual}`, '--max-turns', usual])
  await run(['tool', 'run', usual, '--json', named])
  await run(['receipt', 'verify', '--against', usual])
  await run(['provider', 'test', usual])
  const good = readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')
  const more = [`default_model = [${JSON.stringify(usual)}]`, `workspace_dir = "/no/${usual}"`]
  const moreCommands = [['config', 'validate', '--json'], ['config', 'show'], ['doctor']]
  for (const line of [`api_key = ${JSON.stringify(apiKey)}`, `x = "${usual}`, ...(isDeep ? more : [])]) {
    at.config(`${line}\n${good.replace(/^(default_model|workspace_dir) = .*$/m, '')}`)
    for (const command of [['config', 'validate'], ['agent', '-m', 'x'], ...(isDeep ? moreCommands : [])]) await run(command)
  }
  at.config(good)
}

/** Types secrets into the conversation, and into the approval question. */
async function inTerminal({ keep, at }: Session): Promise<void> {
  const fixture = at.fixture([call('file_write', { path: 'out.txt', content: 'of the answer' }), answer])
  const result = await at.terminal(
    ['agent'],
    [
      ['> ', `my token is ${usual}\r`],
      ['[y/N', 'n\r'],
      ['It says', '/exit\r'],
    ],
    { env: { ...environment, BRAIDCLAW_MOCK_FIXTURE: fixture } },
  )
  // The terminal itself echoes typed text; only our own output counts.
  keep('agent, in a terminal', { ...result, stdout: result.stdout.replaceAll(`my token is ${usual}`, '') })
}

/** Dies while a command runs; the next start closes the run and writes the receipt. */
async function crash({ keep, turn, at }: Session): Promise<void> {
  const fixture = at.fixture([call('shell', { command: 'sleep 3 && cat url.txt' }), answer])
  const dying = at.start(['agent', '-m', `die with ${apiKey}`, '--approve-all-medium', '--output-format', 'stream-json'], {
    env: { ...environment, BRAIDCLAW_MOCK_FIXTURE: fixture, BRAIDCLAW_LOG: 'json:debug' },
  })
  await dying.says('tool started')
  process.kill(dying.pid, 'SIGKILL')
  keep('agent, killed', await dying.result)
  const { stderr } = await turn('after', [answer])
  if (!stderr.includes('recovered after a crash')) throw new Error(`the next start put nothing right: ${stderr}`)
}

async function lookAround({ run }: Session): Promise<void> {
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
  for (const command of commands)
    for (const log of isDeep ? ['json:debug', 'debug'] : ['json:debug']) await run(command, { env: { BRAIDCLAW_LOG: log } })
}
