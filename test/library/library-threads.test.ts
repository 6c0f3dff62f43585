/** Threads of a program's own, over the real home: the page that tells of them, their record, and what the commands make of it. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BraidClaw, createAgent, type ModelCall, replay, type Thread, verifyAgent, veto } from '../../src/agent.ts'
import { type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { call, home, scripted } from '../support/turns.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/threads.md'), 'utf8')
const examples = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, source = '']) => source)

/** As a program of somebody's own, with the package installed. */
async function program(at: Nest, source: string, env: { readonly [name: string]: string } = {}) {
  mkdirSync(join(at.home, 'node_modules'), { recursive: true })
  symlinkSync(root, join(at.home, 'node_modules/braidclaw'))
  writeFileSync(join(at.home, 'program.ts'), source.replaceAll('/work/project', at.workspace))
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', join(at.home, 'program.ts')], {
    cwd: at.workspace,
    env: { ...at.env, PATH: process.env.PATH, ...env },
    stderr: 'pipe',
    timeout: 60_000,
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code, stdout, stderr }
}

test('the page has two examples, and the veto runs', async () => {
  expect(examples).toHaveLength(2)
  using at = nest()
  expect(await program(at, examples[0] ?? '')).toEqual({ code: 0, stdout: '', stderr: '' })
})

// It explores the whole program before it runs.
const inDepth = isDeep ? test.if(needs('bwrap', 'make')) : () => {}
inDepth(
  'the other example blocks the deploy until the tests have passed, and the run is replayed',
  async () => {
    using at = home()
    writeFileSync(join(at.workspace, 'Makefile'), 'test:\n\t@echo tested\ndeploy:\n\t@echo deployed\n')
    const make = (what: string) => call('shell', { command: `make ${what}` })
    const { env } = scripted(at, [make('deploy'), make('test'), make('deploy'), { text: 'Deployed.' }])
    const { code, stdout, stderr } = await program(at, examples[1] ?? '', env)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^Denied by user\/tests-first: run "make test" first, and see it pass\ntested\n[\s\S]*deployed\n[\s\S]*the same: \d+ events\n$/,
    )
  },
  120_000,
)

const reads: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: 'I see.' }
  else yield { type: 'tool_use', name: 'file_read', input: { path: 'hello.txt' } }
}
const noRead = veto('no-read', ({ call }) => call.name === 'file_read', { reason: 'nothing is read here' })

function agentAt(at: Nest, own: Parameters<typeof createAgent>[0]): BraidClaw {
  at.file('hello.txt', 'hello')
  return createAgent({ cwd: at.workspace, home: join(at.home, '.braidclaw'), env: at.env, modelCall: reads, ...own })
}

const where = (at: Nest) => ({ home: join(at.home, '.braidclaw'), env: at.env })

test('the commands check what they can of a run with threads, and say what they cannot', async () => {
  using at = nest()
  const agent = agentAt(at, { threads: [noRead] })
  await Array.fromAsync(agent.run('read it'))
  await agent.close()
  const again = await at.run(['replay', 'last'])
  expect([again.code, again.stdout]).toEqual([1, ''])
  expect(again.stderr).toMatch(
    /^run_\w+: not run again: the run had the thread "user\/no-read" \(digest [0-9a-f]{64}\), which is not given\n/,
  )
  expect(again.stderr).toContain('its record is as it was written')
  expect((await at.run(['replay', '--all'])).code).toBe(1)
  at.file('policy.toml', '')
  const policy = await at.run(['replay', '--policy', 'policy.toml', 'last'])
  expect([policy.code, policy.stdout]).toEqual([0, expect.stringContaining('is not known: the run had the thread "user/no-read"')])
  expect((await at.run(['run', 'show', 'last'])).stdout).toContain('thread.add user/no-read')
  for (const sound of [['receipt', 'verify', '--deep'], ['rebuild'], ['rebuild', '--check']]) expect((await at.run(sound)).code).toBe(0)
})

test('a record that was altered is found without the threads', async () => {
  using at = nest()
  const agent = agentAt(at, { threads: [noRead] })
  await Array.fromAsync(agent.run('read it'))
  await agent.close()
  using database = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  database.run(`UPDATE journal SET body = replace(body, 'read it', 'read me') WHERE type = 'run.start'`)
  const { code, stderr } = await at.run(['replay', 'last'])
  expect([code, stderr]).toEqual([9, expect.stringContaining('its record was ALTERED: event 2')])
  expect(await replay({ ...where(at), runId: 'last', threads: [noRead] })).toMatchObject({ ok: false, code: 'integrity' })
})

test('the library runs it again with the same threads, and with no others', async () => {
  using at = nest()
  const agent = agentAt(at, { threads: [noRead] })
  const shown = (await Array.fromAsync(agent.run('read it'))).filter((event) => event.type !== 'text' || !event.isPartial)
  const runId = agent.runId() ?? ''
  // Also while an agent has the home open.
  expect(await replay({ ...where(at), runId, threads: [noRead] })).toMatchObject({ ok: true, runId, events: shown, ended: true })
  const other = veto('no-read', () => true)
  expect(await replay({ ...where(at), runId, threads: [other] })).toMatchObject({
    ok: false,
    code: 'error',
    message: expect.stringMatching(/the thread "user\/no-read" with the digest [0-9a-f]{64}; the one given has [0-9a-f]{64}$/),
  })
  expect(await replay({ ...where(at), runId: 'run_none' })).toMatchObject({
    ok: false,
    message: expect.stringContaining('no run "run_none"'),
  })
  await agent.close()
})

test('a call that a thread asked for is told again when the conversation is gone on with', async () => {
  using at = nest()
  const first: Thread<boolean> = {
    name: 'first',
    init: false,
    bid: (asked) => ({
      request: asked ? [] : [{ type: 'propose', id: 'look', call: { name: 'file_read', input: { path: 'hello.txt' } } }],
    }),
    next: () => true,
  }
  const heard: string[] = []
  const modelCall: ModelCall = async function* (messages) {
    heard.push(JSON.stringify(messages))
    yield { type: 'text', content: 'I see.' }
  }
  const agent = agentAt(at, { threads: [first], modelCall })
  await Array.fromAsync(agent.run('what is there?'))
  await agent.close()
  const next = agentAt(at, { conversation: agent.conversationId() ?? '', modelCall })
  await Array.fromAsync(next.run('and now?'))
  await next.close()
  for (const messages of heard) for (const words of ['user/first', 'file_read', 'hello']) expect(messages).toContain(words)
})

test('a thread can be added before the first run, or is told why not', async () => {
  using at = nest()
  const agent = agentAt(at, {})
  expect(await agent.addThread({ ...noRead, name: 'No!' })).toContain('has no fit name')
  expect(await agent.addThread(noRead)).toBeUndefined()
  expect(await agent.addThread(noRead)).toContain('is there already')
  await Array.fromAsync(agent.run('read it'))
  expect(agent.ending()?.code).toBe('denied')
  await agent.close()
  expect(() => createAgent({ threads: [noRead, noRead] })).toThrow('is there already')
})

test('the model checker names the thread that breaks a property, with the shortest run', async () => {
  const wall: Thread<null> = { name: 'wall', init: null, bid: () => ({ block: [{ type: 'cancel' }] }), next: (state) => state }
  const { ok, counterexample } = await verifyAgent({ threads: [wall] })
  expect([ok, counterexample]).toEqual([false, { property: 'P14', steps: [], heldBack: ['cancel from outside by user/wall'] }])
  // A thread that breaks nothing is explored to the end: src/runtime/verify does that in both tiers.
  if (!isDeep) return
  const good = await verifyAgent({ threads: [noRead], calls: [{ name: 'file_read', input: { path: 'x' } }] })
  expect([good.ok, good.idleThreads]).toEqual([true, []])
}, 120_000)
