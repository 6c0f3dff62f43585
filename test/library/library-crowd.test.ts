/** Many agents of one program on one home: side by side, cancelled, closed and stopped at once. */

import { expect, test } from 'bun:test'
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentEvent, type BraidClaw, createAgent, type ModelCall, type Thread, veto } from '../../src/agent.ts'
import { type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { until } from '../support/until.ts'

const confined = test.if(needs('bwrap'))

/** Asks for the calls, one reply, and then says what came of the last. */
const calling = (...calls: { name: string; input: { [key: string]: string } }[]): ModelCall =>
  async function* (messages) {
    const last = messages.at(-1)
    if (last?.role === 'tool') yield { type: 'text', content: last.content }
    else for (const call of calls) yield { type: 'tool_use', ...call }
  }

const write = (path: string) => ({ name: 'file_write', input: { path, content: 'x' } })

/** Never says anything, and does not hear that it is cancelled. */
const hanging: ModelCall = async function* () {
  await new Promise(() => {})
  yield { type: 'done' }
}

function agentAt(at: Nest, modelCall: ModelCall, own: Parameters<typeof createAgent>[0] = {}): BraidClaw {
  return createAgent({ cwd: at.workspace, home: join(at.home, '.braidclaw'), env: at.env, modelCall, ...own })
}

async function sound(at: Nest): Promise<void> {
  const home = { env: { BRAIDCLAW_HOME: join(at.home, '.braidclaw') } }
  const [chain, turns] = [await at.run(['receipt', 'verify', '--deep'], home), await at.run(['rebuild', '--check'], home)]
  expect([chain.code, chain.stderr, turns.code]).toEqual([0, '', 0])
}

async function answerAll(agent: BraidClaw, prompt: string): Promise<readonly AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of agent.run(prompt)) {
    events.push(event)
    if (event.type === 'approval_gate') await agent.approve(event.gateId, { allow: true })
  }
  return events
}

test('twenty agents with approvals and threads share a home, and one of them is closed in mid-turn', async () => {
  using at = nest()
  const agents = Array.from({ length: 20 }, (_, n) => {
    const even = veto('even-only', () => n % 2 === 1, { reason: 'only even ones write', uses: [n % 2] })
    return agentAt(at, calling(write(`file-${n}.txt`)), { threads: [even] })
  })
  const closing = agentAt(at, hanging)
  const turn = Array.fromAsync(closing.run('never ends'))
  const turns = Promise.all(agents.map((agent, n) => answerAll(agent, `write ${n}`)))
  await until(() => closing.runId() !== undefined)
  await closing.close()
  expect((await turn).at(-1)).toMatchObject({ type: 'done', stopReason: 'cancelled' })
  expect((await turns).map((events) => events.at(-1)?.type)).toEqual(agents.map(() => 'done'))
  expect(agents.map((agent) => agent.ending()?.code)).toEqual(agents.map((_, n) => (n % 2 === 1 ? 'denied' : 'answered')))
  const written = agents.map((_, n) => Bun.file(join(at.workspace, `file-${n}.txt`)).exists())
  expect(await Promise.all(written)).toEqual(agents.map((_, n) => n % 2 === 0))
  await Promise.all(agents.map((agent) => agent.close()))
  await sound(at)
}, 120_000)

test('a second turn while one is under way is told so, and the first one goes on', async () => {
  using at = nest()
  const agent = agentAt(at, calling(write('a.txt')))
  const seen: (readonly AgentEvent[])[] = []
  for await (const event of agent.run('one')) {
    if (event.type !== 'approval_gate') continue
    seen.push(await Array.fromAsync(agent.run('two')))
    await agent.approve(event.gateId, { allow: true })
  }
  expect(seen).toMatchObject([
    [
      { type: 'error', code: 'busy' },
      { type: 'done', stopReason: 'error' },
    ],
  ])
  expect(agent.ending()?.code).toBe('answered')
  await agent.close()
  await sound(at)
})

test('closing in mid-turn leaves a record that says cancelled, and the conversation can be gone on with', async () => {
  using at = nest()
  const threads = [veto('never', ({ call }) => call.name === 'shell')]
  const agent = agentAt(at, calling(write('a.txt')), { threads })
  const first: AgentEvent[] = []
  for await (const event of agent.run('write it')) {
    first.push(event)
    // From another place of the program; what is open is taken back.
    if (event.type === 'approval_gate') void agent.close()
  }
  expect(first.at(-1)).toMatchObject({ type: 'done', stopReason: 'cancelled' })
  await agent.close()
  expect(await Array.fromAsync(agent.run('more'))).toMatchObject([{ type: 'error', code: 'closed' }, { type: 'done' }])
  expect(await Bun.file(join(at.workspace, 'a.txt')).exists()).toBe(false)
  for (const again of [threads, []]) {
    const next = agentAt(at, calling(), { conversation: agent.conversationId() ?? '', threads: again })
    await Array.fromAsync(next.run('go on'))
    expect([next.conversationId(), next.ending()?.code]).toEqual([agent.conversationId(), 'provider'])
    await next.close()
  }
  await sound(at)
}, 120_000)

test('two hundred turns cancelled at once all end so, and are on disk', async () => {
  using at = nest()
  const agents = Array.from({ length: repetitions({ fast: 50, deep: 200 }) }, () => agentAt(at, hanging))
  const turns = agents.map((agent, n) => Array.fromAsync(agent.run(`question ${n}`)))
  await until(() => agents.some((agent) => agent.runId() !== undefined))
  const began = performance.now()
  for (const agent of agents) agent.cancel()
  const ended = await Promise.all(turns)
  if (process.env.BRAIDCLAW_TEST_FIGURES) console.log(`200 cancelled: ${(performance.now() - began).toFixed(0)} ms`)
  expect(ended.map((events) => events.at(-1))).toEqual(ended.map(() => ({ type: 'done', stopReason: 'cancelled' })))
  expect(new Set(agents.map((agent) => agent.ending()?.code))).toEqual(new Set(['cancelled']))
  await Promise.all(agents.map((agent) => agent.close()))
  await sound(at)
}, 120_000)

confined(
  'an emergency stop ends sixty-four running tools',
  async () => {
    using at = nest()
    const sleep = { name: 'shell', input: { command: 'sleep 300' } }
    const four = calling(...Array.from({ length: 4 }, () => sleep))
    const agents = Array.from({ length: repetitions({ fast: 4, deep: 16 }) }, () => agentAt(at, four, { permissionMode: 'full' }))
    const turns = agents.map((agent) => Array.fromAsync(agent.run('sleep')))
    await until(() => sleepers(at).length >= 4 * agents.length)
    const running = sleepers(at)
    const began = performance.now()
    writeFileSync(join(at.home, '.braidclaw/ESTOP'), 'fire drill\n')
    while (running.some(isAlive) && performance.now() - began < 20_000) await Bun.sleep(2)
    const gone = performance.now() - began
    await Promise.all(turns)
    if (process.env.BRAIDCLAW_TEST_FIGURES) console.log(`64 tools stopped: ${gone.toFixed(0)} ms`)
    expect(gone).toBeLessThan(5000)
    expect(new Set(agents.map((agent) => agent.ending()?.code))).toEqual(new Set(['estop']))
    await Promise.all(agents.map((agent) => agent.close()))
    await sound(at)
  },
  120_000,
)

/** What `sleep` runs in this workspace. */
function sleepers(at: Nest): string[] {
  return [...new Bun.Glob('[0-9]*').scanSync({ cwd: '/proc', onlyFiles: false })].filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === at.workspace && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
    } catch {
      return false
    }
  })
}

/** Dead ones that nobody has buried yet have no folder. */
function isAlive(pid: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) !== ''
  } catch {
    return false
  }
}

test('a thread that fails in one agent leaves the others alone', async () => {
  using at = nest()
  const fails: Thread<null> = {
    name: 'fails',
    init: null,
    bid: () => ({ wait: [{ type: 'propose' }] }),
    next: () => {
      throw new Error('boom')
    },
  }
  const [broken, whole] = [agentAt(at, calling(write('a.txt')), { threads: [fails] }), agentAt(at, calling(write('b.txt')))]
  const [events] = await Promise.all([answerAll(broken, 'go'), answerAll(whole, 'go')])
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'error', message: 'thread "user/fails" threw in next() after propose#call_1: boom' }),
  )
  expect([broken.ending()?.code, whole.ending()?.code]).toEqual(['error', 'answered'])
  await Promise.all([broken.close(), whole.close()])
  await sound(at)
})

test('a turn that is cancelled while its home is still being opened ends so, and the next one runs', async () => {
  using at = nest()
  const state = { hang: true }
  const agent = agentAt(at, async function* () {
    if (state.hang) await new Promise(() => {})
    yield { type: 'text', content: 'hello' }
  })
  const turn = Array.fromAsync(agent.run('never'))
  agent.cancel()
  expect((await turn).at(-1)).toEqual({ type: 'done', stopReason: 'cancelled' })
  state.hang = false
  await Array.fromAsync(agent.run('now'))
  expect(agent.ending()?.code).toBe('answered')
  await agent.close()
}, 120_000)
