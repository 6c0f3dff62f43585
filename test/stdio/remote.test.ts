/** The library of Node: it drives the executable over stdio. Each case runs in this process (Bun) and in Node, from one bundle. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent } from '../../src/library/remote/agent.ts'
import { executable } from '../support/cli.ts'

const root = join(import.meta.dir, '../..')
const node = Bun.which('node')
const at = { dir: '', bundle: '' }

beforeAll(async () => {
  at.dir = mkdtempSync(join(tmpdir(), 'braidclaw-remote-'))
  const entry = join(at.dir, 'entry.ts')
  writeFileSync(entry, ['remote/agent', 'stdio/transports'].map((name) => `export * from '${root}/src/library/${name}.ts'\n`).join(''))
  const built = await Bun.build({ entrypoints: [entry], target: 'node', format: 'esm' })
  at.bundle = join(at.dir, 'agent.mjs')
  writeFileSync(at.bundle, (await built.outputs[0]?.text()) ?? '')
})
afterAll(() => rmSync(at.dir, { recursive: true, force: true }))

/** Runs a program that uses `createAgent` and `options`; it prints its result as JSON with `say`. */
async function program(text: string, { under, fixture = [] }: { under: string; fixture?: readonly object[] }) {
  const dir = mkdtempSync(join(at.dir, 'case-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'hello.txt'), 'hello from a file')
  const file = join(dir, 'program.mjs')
  writeFileSync(join(dir, 'fixture.json'), JSON.stringify({ responses: fixture }))
  writeFileSync(
    file,
    `import { createAgent } from ${JSON.stringify(at.bundle)}
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
const cwd = ${JSON.stringify(cwd)}
const env = { HOME: ${JSON.stringify(dir)}, PATH: process.env.PATH, BRAIDCLAW_MOCK_FIXTURE: ${JSON.stringify(join(dir, 'fixture.json'))} }
const options = { cwd, home: ${JSON.stringify(join(dir, 'home'))}, env, executable: ${JSON.stringify(executable)} }
const say = (value) => console.log(JSON.stringify(value))
${text}
`,
  )
  const argv = under === 'node' ? [node ?? 'node', file] : [process.execPath, '--config=/dev/null', '--no-env-file', '--no-install', file]
  const child = Bun.spawn(argv, { cwd, stdout: 'pipe', stderr: 'pipe' })
  const late = setTimeout(() => child.kill('SIGKILL'), 20_000)
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  clearTimeout(late)
  expect(stderr).toBe('')
  expect(child.exitCode).toBe(0)
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

test('what cannot leave the process is refused at once, with a sentence', () => {
  const provider = {
    name: 'mine',
    capabilities: () => ({ streaming: false, tools: false, thinking: false, contextTokens: 0 }),
    chat: async function* () {},
  }
  expect(() => createAgent({ provider })).toThrow('give a modelCall')
  const parameters = { type: 'array' } as unknown as { type: 'object' }
  expect(() =>
    createAgent({
      tools: [
        {
          name: 'a',
          description: 'b',
          parameters: Object.assign(parameters, { toJSONSchema: () => parameters, safeParse: () => ({ success: true }) }),
          execute: () => '',
        },
      ],
    }),
  ).toThrow('schema of an object')
})

test('the bundle names nothing of Bun', async () => {
  const text = await Bun.file(at.bundle).text()
  expect(text.match(/\bBun\.[a-z]\w*|from "bun|Temporal\.|withResolvers/gi)).toBeNull()
})

describe.each(node ? ['node', 'bun'] : ['bun'])('on %s', (under) => {
  test('a denial keeps the file away, a yes writes it, and changes shows the patch', async () => {
    const write = { tool_calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'new\n' } }] }
    const found = await program(
      `const agent = createAgent(options)
      for (const allow of [false, true]) {
        for await (const event of agent.run('write'))
          if (event.type === 'approval_gate') {
            const patch = (await agent.changes(event.gateId))?.patch
            say([agent.gate(event.gateId).call.name, patch.includes('+new'), await agent.approve(event.gateId, { allow }) ?? 'counted', agent.gate(event.gateId) ?? 'closed'])
          }
        say([agent.ending().code, existsSync(cwd + '/new.txt'), typeof agent.runId(), typeof agent.conversationId()])
      }
      await agent.close()
      for await (const event of agent.run('again')) say(event.code ?? event.stopReason)`,
      { under, fixture: [write, { text: 'no' }, write, { text: 'yes' }] },
    )
    expect(found).toEqual([
      ['file_write', true, 'counted', 'closed'],
      ['denied', false, 'string', 'string'],
      ['file_write', true, 'counted', 'closed'],
      ['answered', true, 'string', 'string'],
      'closed',
      'error',
    ])
  })

  test('its own model and its own tool are called back, and an error of either is told', async () => {
    const found = await program(
      `const tools = [{ name: 'add', description: 'Adds', risk: 'low', parameters: { type: 'object', properties: { a: { type: 'integer' } } }, execute: ({ a }, { signal }) => { if (a > 1) throw new Error('too much'); return { sum: a + 1, signal: signal instanceof AbortSignal } } }]
      let a = 0
      const modelCall = async function* (messages, offered) {
        const last = messages.at(-1)
        if (messages.filter(({ role }) => role === 'tool').length === 2) throw new Error('the model is tired')
        if (last.role === 'tool') yield { type: 'text', content: last.content, isMine: true }
        yield { type: 'tool_use', name: 'add', input: { a: ++a } }
      }
      const agent = createAgent({ ...options, tools, modelCall })
      for await (const event of agent.run('go')) if (['tool_result', 'error', 'done'].includes(event.type)) say(event)
      await agent.close()`,
      { under },
    )
    expect(found).toMatchObject([
      { type: 'tool_result', status: 'completed', output: '{"sum":2,"signal":true}' },
      { type: 'tool_result', status: 'failed', output: expect.stringContaining('too much') },
      { type: 'error', message: expect.stringContaining('the model is tired') },
      { type: 'done', stopReason: 'error' },
    ])
  })

  test('a rule in JSON refuses a call; a thread with functions is refused with a sentence', async () => {
    const found = await program(
      `try { createAgent({ ...options, threads: [{ name: 'mine', init: null, bid: () => ({}), next: (s) => s }] }) } catch (error) { say(error.message) }
      const agent = createAgent({ ...options, threads: [{ name: 'no-reads', on: { type: 'propose', tool: 'file_read' }, reason: 'read nothing' }] })
      for await (const event of agent.run('read')) if (event.type === 'tool_result') say(event)
      say(await agent.addThread({ name: 'late', init: null, bid: () => ({}), next: (s) => s }))
      await agent.close()`,
      { under, fixture: [{ tool_calls: [{ name: 'file_read', arguments: { path: 'hello.txt' } }] }, { text: 'no' }] },
    )
    expect(found).toMatchObject([
      expect.stringContaining('thread "mine": a thread with functions cannot join an agent in another process'),
      { status: 'failed', output: expect.stringContaining('read nothing') },
      expect.stringContaining('rules in JSON'),
    ])
  })

  test('abort, break and a slow consumer: the turn is cancelled, and the child waits', async () => {
    const found = await program(
      `const modelCall = async function* (messages, tools, signal) { for (let sent = 0; sent < 20000 && !signal.aborted; sent++) { yield { type: 'text', content: 'word ' }; if (sent % 100 === 0) await new Promise(setImmediate) } }
      const agent = createAgent({ ...options, modelCall })
      const stop = new AbortController()
      let seen = 0
      for await (const event of agent.run('go', stop.signal)) { if (event.type === 'text' && ++seen === 3) stop.abort(); if (event.type === 'done') say(event.stopReason) }
      say(agent.ending().code)
      for await (const event of agent.run('go')) if (event.type === 'text') break
      say(agent.ending().code)
      const aborted = AbortSignal.abort()
      for await (const event of agent.run('go', aborted)) if (event.type === 'done') say(event.stopReason); else if (event.type === 'error' && event.code !== 'cancelled') console.error(event)
      await agent.close()`,
      { under },
    )
    expect(found).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled'])
  })

  test('a child that dies in the middle of a turn is an error and an end; the next run starts another', async () => {
    const found = await program(
      `import { readdirSync } from 'node:fs'
      const proc = (pid, name) => { try { return readFileSync('/proc/' + pid + '/' + name, 'utf8') } catch { return '' } }
      const isChild = (pid) => proc(pid, 'stat').replace(/.*\\) \\S /s, '').startsWith(process.pid + ' ') && proc(pid, 'cmdline').includes('stdio')
      const agent = createAgent({ ...options, tools: [{ name: 'die', description: 'Dies', risk: 'low', parameters: { type: 'object' }, execute: () => {
        for (const pid of readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).filter(isChild)) process.kill(Number(pid), 'SIGKILL')
        return 'dead' } }],
        modelCall: async function* (messages) { if (messages.at(-1).content === 'go') yield { type: 'tool_use', name: 'die', input: {} }; else yield { type: 'text', content: 'back' } } })
      for await (const event of agent.run('go')) if (['error', 'done'].includes(event.type)) say(event)
      say(agent.ending())
      const before = agent.conversationId()
      for await (const event of agent.run('again')) if (event.type === 'done') say(event.result)
      say(before === agent.conversationId())
      await agent.close()`,
      { under },
    )
    expect(found).toMatchObject([
      { type: 'error', code: 'child_ended', message: expect.stringContaining('SIGKILL') },
      { type: 'done', stopReason: 'error' },
      { stop: 'error', code: 'error', message: expect.stringContaining('SIGKILL') },
      'back',
      true,
    ])
  })

  test('a program that is not there, or is another one, is an error of the turn', async () => {
    const found = await program(
      `for (const executable of ['/nowhere/braidclaw', '/bin/true']) {
        const agent = createAgent({ ...options, executable })
        for await (const event of agent.run('go')) say(event.message ?? event.stopReason)
        await agent.close()
      }`,
      { under },
    )
    expect(found).toEqual([
      expect.stringContaining('"/nowhere/braidclaw" does not exist'),
      'error',
      expect.stringContaining('exit code 0'),
      'error',
    ])
  })

  test('a program that speaks another protocol is refused in one sentence that names both', async () => {
    const found = await program(
      `const newer = cwd + '/newer'
      const hello = JSON.stringify({ hello: { protocol: 2, version: '9.0.0', capabilities: [] } })
      writeFileSync(newer, "#!/bin/sh\\nread line\\necho '" + hello + "'\\nexec cat >/dev/null\\n", { mode: 0o755 })
      const agent = createAgent({ ...options, executable: newer })
      for await (const event of agent.run('go')) say(event.message ?? event.stopReason)
      await agent.close()`,
      { under },
    )
    expect(found).toEqual([
      'braidclaw 9.0.0 speaks protocol 2 and this library speaks protocol 1; install a newer version of this library',
      'error',
    ])
  })

  test('a prompt that is too long for a line ends its turn with the reason, and the next run works', async () => {
    const found = await program(
      `const agent = createAgent(options)
      for (const prompt of ['x'.repeat(17 * 1024 * 1024), 'go'])
        for await (const event of agent.run(prompt)) if (['error', 'done'].includes(event.type)) say(event.message ?? event.result ?? event.stopReason)
      await agent.close()`,
      { under, fixture: [{ text: 'still here' }] },
    )
    expect(found).toEqual([expect.stringContaining('longer than 16777216 bytes'), 'error', 'still here'])
  })

  test('a program that forgets close still ends, and so does the child', async () => {
    const found = await program(
      `const agent = createAgent(options)
      for await (const event of agent.run('go')) if (event.type === 'done') say(event.result)`,
      { under, fixture: [{ text: 'bye' }] },
    )
    expect(found).toEqual(['bye'])
  })

  test("httpTransport under Node's own server answers, refuses, and cancels the turn of a client that goes away", async () => {
    const found = await program(
      `import { createServer } from 'node:http'
import { httpTransport } from ${JSON.stringify(at.bundle)}
import { pipeline, Readable } from 'node:stream'
const modelCall = async function* (messages, tools, signal) {
  yield { type: 'text', content: 'you said ' + messages.at(-1).content }
  while (messages.at(-1).content === 'endless' && !signal.aborted) { yield { type: 'text', content: ' word' }; await new Promise(setImmediate) }
}
const agent = createAgent({ ...options, modelCall })
const { fetch: answer } = httpTransport(agent)
const server = createServer(async (incoming, outgoing) => {
  const body = incoming.method === 'POST' ? Readable.toWeb(incoming) : undefined
  const response = await answer(new Request('http://localhost' + incoming.url, { method: incoming.method, headers: incoming.headers, body, duplex: 'half' }))
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  pipeline(Readable.fromWeb(response.body), outgoing, () => {})
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = 'http://127.0.0.1:' + server.address().port + '/run'
const post = (body, more = {}) => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body, ...more })
say((await (await post('{"prompt":"Hello"}')).text()).includes('"result":"you said Hello"'))
say([(await fetch(url)).status, (await post('{')).status])
const leave = new AbortController()
const response = await post('{"prompt":"endless"}', { signal: leave.signal })
await response.body.getReader().read()
leave.abort()
for (let tries = 0; agent.ending() === undefined && tries < 500; tries++) await new Promise((resolve) => setTimeout(resolve, 10))
say(agent.ending().code)
await agent.close()
server.closeAllConnections()
server.close()`,
      { under },
    )
    expect(found).toEqual([true, [405, 400], 'cancelled'])
  })
})
