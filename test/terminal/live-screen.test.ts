/** The rows below the scrollback, on whole screens of several sizes: what is typed stays in its place, whatever streams or is resized. */

import { afterEach, test as always, describe, expect } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { home, scripted } from '../support/turns.ts'
import { until as untilTrue } from '../support/until.ts'
import { unknownQuestion } from '../support/window-questions.ts'

const test = always.if(needs('tmux'))
/** A server that ends may still take the session of the next test, so each test has its own. */
const server = { number: 0 }
const ask = (...words: string[]) =>
  Bun.spawnSync(['tmux', '-L', `braidclaw-live-${process.pid}-${server.number}`, ...words]).stdout.toString()
afterEach(() => {
  if (Bun.which('tmux')) ask('kill-server')
  server.number += 1
})

/** Everything from the first row of the scrollback to the last, with wrapped rows joined, without spaces at the ends. */
const lines = () =>
  ask('capture-pane', '-p', '-J', '-S', '-500')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trimEnd()
const until = (look: () => boolean | Promise<boolean>) =>
  untilTrue(look, 10_000).catch((error: Error) => {
    throw new Error(`${error.message}, on the screen:\n${lines()}`)
  })
const times = (text: string) => lines().split(text).length - 1
const shows = (text: string) => until(() => lines().includes(text))
const keys = (...words: string[]) => void ask('send-keys', ...words)
const types = (text: string) => void ask('send-keys', '-l', text)
const resize = (columns: number, rows: number) => void ask('resize-window', '-x', `${columns}`, '-y', `${rows}`)
const cursor = () => ask('display', '-p', '#{cursor_x}').trim()
/** Ends when the footer, the last row, is drawn in this width. */
const drawnIn = (columns: number, footer: string) => until(() => lines().endsWith(footer.slice(0, columns)))

/** Begins a conversation on a terminal of this size. */
async function begin(at: Nest, [columns, rows]: readonly [number, number], env: object): Promise<string> {
  // Long, so that the footer looks another in each width.
  const name = 'a-folder-with-so-long-a-name-that-the-footer-fills-the-row-of-a-screen'
  const folder = join(at.workspace, name)
  mkdirSync(folder, { recursive: true })
  const variables = Object.entries({ ...at.env, ...env }).map(([name, value]) => `${name}=${value}`)
  const size = ['-x', `${columns}`, '-y', `${rows}`]
  ask('-f', '/dev/null', 'new-session', '-d', ...size, '-c', at.workspace, 'env', '-i', ...variables, executable, 'agent', '-C', folder)
  await until(() => /> \n.* · /.test(`${lines().replaceAll(/>\n/g, '> \n')}`))
  const model = /(\S+\/\S+) · /.exec(lines())?.[1]
  return `${model} · ~/braidclaw-workspace/${name}`
}

const echoing = (at: Nest) => scripted(at, [{ text: 'You said {{last_user_message}}.' }]).env

/** A model whose words come when `say` is called. */
function slowModel() {
  const state: { stream?: ReadableStreamDefaultController } = {}
  const chunk = (delta: object, more = {}) => `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, ...more }] })}\n\n`
  const far = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) =>
      unknownQuestion(request) ??
      new Response(new ReadableStream({ start: (stream) => void Object.assign(state, { stream }) }), {
        headers: { 'content-type': 'text/event-stream' },
      }),
  })
  return {
    toml: `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:${far.port}/v1"\nmodel = "m"\n`,
    asked: () => until(() => state.stream !== undefined),
    say: (content: string) => state.stream?.enqueue(chunk({ content })),
    end() {
      state.stream?.enqueue(`${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`)
      state.stream?.close()
    },
    [Symbol.dispose]: () => void far.stop(true),
  }
}

describe.each<[number, number]>([
  [80, 24],
  [120, 40],
])('in %i columns and %i rows', (columns, rows) => {
  test('what is typed while the answer streams stays below it, in one copy, also when the window is resized meanwhile', async () => {
    using at = home()
    using model = slowModel()
    at.config(model.toml)
    const footer = await begin(at, [columns, rows], {})
    keys('go', 'Enter')
    await model.asked()
    const words = Array.from({ length: 120 }, (_, number) => `word${number} 日本 👍 `)
    const narrow = columns - 37
    for (const [number, word] of words.entries()) {
      model.say(number % 10 === 9 ? `${word}\n\n` : word)
      if (number === 20) types('half typed 日本 👩‍💻')
      if (number === 40) resize(narrow, rows - 6)
      if (number === 80) resize(columns, rows)
      if ([20, 40, 80].includes(number)) await shows(`word${number} `)
    }
    await shows('word119')
    await drawnIn(columns, footer)
    expect(times('half typed')).toBe(1)
    expect(times(footer.slice(0, 30))).toBe(1)
    for (let number = 0; number < words.length; number += 1)
      expect([number, lines().match(new RegExp(`word${number}\\b`, 'g'))?.length]).toEqual([number, 1])
    model.end()
    keys('Enter')
    await shows('> half typed 日本 👩‍💻\n')
  })

  test('a half typed line leaves no copies in any width', async () => {
    using at = home()
    const footer = await begin(at, [columns, rows], echoing(at))
    const text = 'the quick brown fox 日本語 jumps over the lazy dog and then it runs away'
    // A prompt in the last rows, where it mostly is: tmux loses the cursor when rows above it leave the screen.
    for (let more = 0; more < 3; more += 1) keys('/help', 'Enter')
    await until(() => times('? lists the keys') === 3)
    types(text)
    await shows('runs away')
    for (const width of [60, 31, 200, 19, 90, 400, columns]) {
      resize(width, rows)
      await drawnIn(width, footer)
    }
    expect(times('quick brown')).toBe(1)
    expect(times(footer.slice(0, columns - 1))).toBe(1)
    keys('Enter')
    await shows('You said the quick brown fox')
  })

  test('the keys of the editor', async () => {
    using at = home()
    await begin(at, [columns, rows], { ...echoing(at), EDITOR: 'false' })
    types('one')
    keys('M-Enter')
    types('two\\')
    keys('Enter')
    types('three 👨‍👩‍👧')
    keys('BSpace', 'C-a')
    types('=')
    await shows('> one\n  two\n  =three\n')
    keys('C-g')
    await shows('the editor ended with 1; the message is unchanged')
    expect(lines()).toContain('> one\n  two\n  =three\n')
    keys('Enter')
    await shows('You said one\ntwo\n=three.')
    types('/pol')
    keys('Tab')
    await shows('> /policy\n')
    keys('C-u')
    types('/m')
    keys('Tab')
    await shows('> /m\n/memory\n/model\n/mcp\n')
    keys('C-u')
    keys('Up')
    await until(() => times('> one\n  two\n  =three\n') === 2)
    keys('C-u', 'Up', 'C-u', 'Up', 'C-u', 'C-k', 'C-k', 'C-k')
    keys('C-r')
    types('tw')
    await shows('(search) tw: one two =three')
    keys('Escape')
    await until(() => times('> one\n  two\n  =three\n') === 2)
    keys('C-c')
    keys('C-l')
    await until(() => ask('capture-pane', '-p').startsWith('> \n') || ask('capture-pane', '-p').startsWith('>\n'))
  })

  test('late answers of the terminal are not typed; a paste of 120 lines is folded and sent whole', async () => {
    using at = home()
    await begin(at, [columns, rows], scripted(at, [{ text: 'The last: {{last_user_message}}' }]).env)
    types('a\u001b[12;40R\u001b[?64;1;2c\u001b]11;rgb:1e1e/1e1e/2e2e\u0007\u001bP>|tmux 3.4\u001b\\\u001b[<0;12;3Mb\u001b[I\u001b[O')
    await shows('> ab\n')
    const text = Array.from({ length: 120 }, (_, number) => `line ${number}`).join('\n')
    ask('set-buffer', text)
    ask('paste-buffer', '-p')
    await shows('> ab[120 lines]\n')
    expect(cursor()).toBe('15')
    keys('Enter')
    await shows('line 119\n')
    await until(() => times('line 57') === 1)
    expect(times('> ab[120 lines]')).toBe(1)
  })
})

test.each<[number, number]>([
  [2, 24],
  [3, 6],
  [9, 2],
  [400, 24],
])('in %i columns and %i rows a message can be typed and sent', async (columns, rows) => {
  using at = home()
  const variables = Object.entries({ ...at.env, ...scripted(at, [{ text: 'heard {{last_user_message}}' }]).env })
  const env = variables.map(([name, value]) => `${name}=${value}`)
  ask(
    '-f',
    '/dev/null',
    'new-session',
    '-d',
    '-x',
    `${columns}`,
    '-y',
    `${rows}`,
    '-c',
    at.workspace,
    'env',
    '-i',
    ...env,
    executable,
    'agent',
  )
  await until(() => lines().includes('>'))
  types('wörd 日本')
  keys('Enter')
  await until(() => lines().replaceAll(/\s/g, '').includes('heardwörd日本'))
})
