/** What a person at the terminal sees while the model thinks and tools run, and that nothing of it stays. */

import { test as always, describe, expect } from 'bun:test'
import { executable, type Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { ctrlC, ctrlD, talk } from '../support/talk.ts'
import { transcript } from '../support/transcript.ts'
import { asksFirst, call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { unknownQuestion } from '../support/window-questions.ts'

const test = always.if(needs('bwrap'))

const slow = (ms: number, reply: object) => ({ delay_ms: ms, ...reply })
const used = { usage: { input_tokens: 1200, output_tokens: 34 } }
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const status = /\r\u001b\[K\u001b\[2m([^\u001b\n]*)\u001b\[22m(?!\n)/g
const erase = '\r\u001b[K'

/** Every state of the status line, in order. */
const states = (screen: string) => [...screen.matchAll(status)].map(([, words]) => words)

/** What is left on the screen when everything that was erased is gone. */
const left = (screen: string) =>
  Bun.stripANSI(
    screen
      .split('\n')
      .map((line) => line.slice(line.lastIndexOf(erase) < 0 ? 0 : line.lastIndexOf(erase) + erase.length))
      .join('\n'),
  )

const busy = [slow(1500, { ...call('shell', { command: 'sleep 1.5' }), ...used }), slow(500, { text: 'done at last', ...used })]
const go = ['agent', '-m', 'go', '--autonomy', 'full']

test('agent -m: what is under way and the time of the turn stand in one line, which is gone before the answer, and the tokens come last', async () => {
  using at = home()
  const { stdout } = await at.terminal(go, [], scripted(at, busy))
  expect(states(stdout).join()).toMatch(
    /^thinking 0 s,thinking 1 s,(?:thinking \d s,)*(?:shell [1-9] s,)+thinking [3-9] s(?:,thinking \d s)*$/,
  )
  // Where the live rows take the place of the status line, the transcript has an empty line.
  expect(left(stdout).replaceAll('\n\n', '\n')).toBe('· shell sleep 1.5 · exit 0\ndone at last\n2,400 tokens in, 68 out\n')
  expect(stdout).toContain(`${erase}\ndone at last`)
  expect(stdout).toEndWith('\u001b[2m2,400 tokens in, 68 out\u001b[22m\n')
})

test('what is over within 300 ms shows nothing', async () => {
  using at = home()
  const { stdout } = await at.terminal(go, [], scripted(at, [slow(100, { text: 'quick' })]))
  expect(states(stdout)).toEqual([])
})

describe('nothing is drawn', () => {
  test.each([
    ['in JSON', [...go, '--json'], {}],
    ['in a stream of JSON', [...go, '--output-format', 'stream-json'], {}],
    ['without colour', go, { NO_COLOR: '1' }],
    ['on a dumb terminal', go, { TERM: 'dumb' }],
    ['among log lines of JSON', go, { BRAIDCLAW_LOG: 'json:error' }],
  ])('%s', async (_, args, env) => {
    using at = home()
    const { stdout } = await at.terminal(args, [], { env: { ...scripted(at, [slow(700, { text: 'done', ...used })]).env, ...env } })
    expect(stdout).toContain('done')
    expect([stdout.includes('thinking'), stdout.includes(erase)]).toEqual([false, false])
    expect(stdout.includes('1,200 tokens in')).toBe('NO_COLOR' in env || 'BRAIDCLAW_LOG' in env)
  })

  test('where stderr is no terminal', async () => {
    using at = home()
    const through = ['sh', '-c', 'exec "$@" 2>err', 'sh']
    const { stdout } = await at.terminal(go, [], { ...scripted(at, [slow(700, { text: 'done', ...used })]), through })
    expect([stdout, await Bun.file(`${at.workspace}/err`).text()]).toEqual(['done\n', ''])
    const piped = await at.run(go, scripted(at, [slow(700, { text: 'done', ...used })]))
    expect([piped.stdout, piped.stderr]).toEqual(['done\n', ''])
  })
})

test('the conversation shows it too; Ctrl-C leaves no rest of it, and a question waits without it', async () => {
  using at = home('', asksFirst)
  const replies = [slow(60_000, { text: 'never' }), call('shell', { command: 'mkdir x' }), slow(600, { text: 'made' })]
  const { stdout } = await talk(at, replies, [
    ['> ', 'first\r'],
    ['thinking 1 s', ctrlC],
    ['cancelled', ''],
    ['> ', 'second\r'],
    ['[y/N/a] ', 'y\r'],
    ['made', ctrlD],
  ])
  const plain = Bun.stripANSI(stdout)
  expect(plain).toContain('thinking 1 s · Esc interrupts\ncancelled\n')
  expect(plain).toMatch(/\[y\/N\/a\] y\r?\n(?:.*\n)*?(?:shell|thinking) \d s · \d+ tokens · Esc interrupts\n/)
})

test('a question at the terminal of one turn waits without it', async () => {
  using at = home('', asksFirst)
  const replies = [call('shell', { command: 'sleep 0.6; touch made' }), { text: 'over' }]
  const child = typing(at, ['agent', '-m', 'go'], scripted(at, replies).env)
  await until(() => child.screen().includes('[y/N/a] '))
  await Bun.sleep(1500)
  expect(child.screen()).toEndWith('[y/N/a] ')
  child.type('y\n')
  await child.ended
  expect(states(child.screen())).toContainEqual(expect.stringMatching(/^shell [1-9] s$/))
  expect(left(child.screen())).not.toMatch(/shell \d s/)
})

test.each([[20], [12]])('in %i columns it keeps to its line', async (columns) => {
  using at = home()
  const child = typing(at, go, scripted(at, [slow(1400, { text: 'done' })]).env, columns)
  await until(() => child.screen().includes('thin'))
  child.resize(columns - 3)
  await child.ended
  for (const words of states(child.screen())) expect(Bun.stringWidth(words ?? '')).toBeLessThan(columns)
  expect(Bun.stringWidth(states(child.screen()).at(-1) ?? '')).toBeLessThan(columns - 3)
  expect(left(child.screen())).toStartWith('done\n')
})

test('a window that is resized while an answer streams changes nothing of it', async () => {
  using at = home()
  const sent = { next: () => {} }
  using far = slowModel(sent)
  at.config(`default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "${far.url}"\nmodel = "m"\n`)
  const child = typing(at, ['agent'], {})
  await until(() => child.screen().includes('> '))
  child.type('hi\r')
  await until(() => child.screen().includes('one half'))
  const before = child.screen().length
  child.resize(60)
  await until(() => child.screen().length > before)
  sent.next()
  await until(() => child.screen().includes('and the other'))
  child.type(ctrlD)
  await child.ended
  expect(transcript(child.screen()).text).toContain('one half and the other\n')
})

/** Half an answer, and the rest when `next` is called. */
function slowModel(sent: { next: () => void }) {
  const chunk = (content: string) => `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] })}\n\n`
  const end = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) =>
      unknownQuestion(request) ??
      new Response(
        new ReadableStream({
          start(stream) {
            stream.enqueue(chunk('one half'))
            sent.next = () => {
              stream.enqueue(chunk(' and the other') + end)
              stream.close()
            }
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      ),
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, [Symbol.dispose]: () => void server.stop(true) }
}

/** On a pseudo-terminal of this width, typed to by hand. */
function typing(at: Nest, args: readonly string[], env: object, cols = 80) {
  const seen = { text: '' }
  const child = Bun.spawn([executable, ...args], {
    cwd: at.workspace,
    env: { ...at.env, ...env },
    terminal: {
      cols,
      rows: 10,
      data(_, bytes) {
        seen.text += new TextDecoder().decode(bytes)
      },
    },
  })
  const late = setTimeout(() => child.kill('SIGKILL'), 20_000)
  return {
    screen: () => seen.text.replaceAll('\r\n', '\n'),
    type: (text: string) => void child.terminal?.write(text),
    resize: (columns: number) => child.terminal?.resize(columns, 10),
    ended: child.exited.then(async () => {
      await Bun.sleep(20)
      clearTimeout(late)
      child.terminal?.close()
    }),
  }
}
