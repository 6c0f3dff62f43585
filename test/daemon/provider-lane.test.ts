/** Twenty conversations of one process and one provider key: so many calls at once, one back-off for all, against a server that answers with raw bytes. */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent } from '../../src/agent.ts'
import { chunk, document, done, streamed } from '../support/raw-server.ts'
import { unknownQuestionIn } from '../support/window-questions.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'braidclaw-lane-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

type Arrival = { readonly at: number; readonly inFlight: number }

/** Each answer comes 30 ms after its question; `answer` says which, by the number of the request from 1. */
function serve(answer: (request: number) => string) {
  const arrivals: Arrival[] = []
  const state = { inFlight: 0 }
  const server = Bun.listen<{ heard: string; asked: boolean }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { heard: '', asked: false }
      },
      async data(socket, bytes) {
        const unknown = unknownQuestionIn(bytes)
        if (unknown) return void socket.end(unknown)
        socket.data.heard += bytes.toString('latin1')
        const [head = '', body = ''] = socket.data.heard.split('\r\n\r\n')
        if (socket.data.asked || body.length < Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 1)) return
        socket.data.asked = true
        state.inFlight += 1
        const number = arrivals.push({ at: performance.now(), inFlight: state.inFlight })
        await Bun.sleep(30)
        state.inFlight -= 1
        socket.write(answer(number))
        socket.end()
      },
    },
  })
  return { url: `http://127.0.0.1:${server.port}/v1`, arrivals, [Symbol.dispose]: () => server.stop(true) }
}

const hello = streamed(chunk({ content: 'Hello.' }, 'stop') + done)
const patience = (seconds: number) =>
  document({ error: { message: 'too many requests' } }, '429 Too Many Requests', `Retry-After: ${seconds}\r\n`)

function agents(url: string, { count = 20, most = 4 } = {}) {
  const home = join(dir, '.braidclaw')
  mkdirSync(home, { recursive: true })
  const provider = `kind = "openai-compatible"\nbase_url = "${url}"\nmodel = "m"\nmax_concurrent = ${most}\n`
  writeFileSync(join(home, 'config.toml'), `workspace_dir = "${dir}"\ndefault_provider = "near"\n[providers.models.near]\n${provider}`)
  const log: string[] = []
  const env = { HOME: dir, PATH: process.env.PATH, BRAIDCLAW_LOG: 'info' }
  const made = Array.from({ length: count }, () => createAgent({ home, cwd: dir, env, log: (line) => log.push(line) }))
  return { made, log, [Symbol.asyncDispose]: async () => void (await Promise.all(made.map((each) => each.close()))) }
}

async function answerOf(agent: ReturnType<typeof createAgent>): Promise<string | undefined> {
  for await (const event of agent.run('Hello?')) if (event.type === 'error') return event.message
  return agent.ending()?.code
}

test('the first of twenty is told to wait a second: all wait, nothing is sent meanwhile, and each question is sent once', async () => {
  using server = serve((number) => (number === 1 ? patience(1) : hello))
  await using stage = agents(server.url)
  expect(await Promise.all(stage.made.map(answerOf))).toEqual(Array(20).fill('answered'))
  expect(server.arrivals).toHaveLength(21)
  expect(Math.max(...server.arrivals.map(({ inFlight }) => inFlight))).toBeLessThanOrEqual(4)
  const refusedAt = (server.arrivals[0]?.at ?? 0) + 30
  const early = server.arrivals.filter(({ at }) => at > refusedAt + 25 && at < refusedAt + 975)
  expect(early).toEqual([])
  const [trial, after] = server.arrivals.filter(({ at }) => at >= refusedAt + 975)
  expect((after?.at ?? 0) - (trial?.at ?? 0)).toBeGreaterThan(20)
  expect(stage.log.some((line) => line.startsWith('warn: provider waits provider=near ahead='))).toBe(true)
}, 120_000)

test('a server that wants everybody to wait for an hour hears of it once, and each turn ends at once and says why', async () => {
  using server = serve(() => patience(3600))
  await using stage = agents(server.url, { most: 1 })
  const answers = await Promise.all(stage.made.map(answerOf))
  expect(server.arrivals).toHaveLength(1)
  expect(answers.filter((answer) => /asked for a pause of another 360[01] s; nothing was sent/.test(answer ?? ''))).toHaveLength(19)
}, 120_000)

test('a turn that waits for its place is cancelled at once', async () => {
  using server = serve(() => patience(20))
  await using stage = agents(server.url, { count: 3, most: 1 })
  const answers = stage.made.map(answerOf)
  while (!stage.log.some((line) => line.includes('holdOffMs'))) await Bun.sleep(5)
  await Bun.sleep(100)
  const before = performance.now()
  for (const agent of stage.made) agent.cancel()
  await Promise.all(answers)
  expect(performance.now() - before).toBeLessThan(500)
  expect(stage.made.map((agent) => agent.ending()?.code)).toEqual(Array(3).fill('cancelled'))
  expect(server.arrivals).toHaveLength(1)
}, 120_000)
