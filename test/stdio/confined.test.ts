/** A whole agent in a sandbox: what it can reach, what stays in the parent, and how it ends. */

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent as createInProcess } from '../../src/agent.ts'
import type { OwnTool } from '../../src/library/agent/agent-api.ts'
import { createAgent } from '../../src/library/remote/agent.ts'
import { type SandboxConfig, sandboxAdapter } from '../../src/library/remote/sandbox.ts'
import type { ModelCall } from '../../src/providers/model-call.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'
import type { Sandbox } from '../../src/sandbox/contract.ts'
import { createSandbox } from '../../src/sandbox/create-sandbox.ts'
import { spawnPlain } from '../../src/sandbox/fixture.ts'
import { prepareGround } from '../../src/sandbox/probe/probe-fixture.ts'
import { probeSandbox } from '../../src/sandbox/run-probes.ts'
import { executable, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const root = mkdtempSync(join(tmpdir(), 'braidclaw-confined-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const real = test.if(needs('bwrap'))

function place() {
  const dir = mkdtempSync(join(root, 'case-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(join(cwd, 'src'), { recursive: true })
  writeFileSync(join(cwd, '.env'), 'TOKEN=from-the-file\n')
  mkdirSync(join(dir, '.ssh'))
  writeFileSync(join(dir, '.ssh/id'), 'a private key\n')
  return { cwd, home: join(dir, 'home'), env: { HOME: dir, SOME_API_KEY: 'key-of-the-parent' }, executable }
}

/** Calls the tools one after another, then says "end". */
const calls = (...wanted: readonly { name: string; input: Record<string, string> }[]): ModelCall =>
  async function* (messages) {
    const next = wanted[messages.filter(({ role }) => role === 'tool').length]
    if (next) yield { type: 'tool_use', ...next }
    else yield { type: 'text', content: 'end' }
  }
const shell = (command: string) => ({ name: 'shell', input: { command } })
const outputs = (events: readonly AgentEvent[]) => events.flatMap((event) => (event.type === 'tool_result' ? [String(event.output)] : []))

const open: SandboxConfig = { enabled: true }
const narrow: SandboxConfig = { enabled: true, security: { allowWrite: ['./src'], denyRead: ['~/.ssh', '.env'] } }

async function run(
  config: SandboxConfig,
  options: { modelCall?: ModelCall; tools?: readonly OwnTool[]; env?: Record<string, string> },
  at = place(),
) {
  const agent = sandboxAdapter.wrap(createAgent({ ...at, permissionMode: 'full', ...options, env: { ...at.env, ...options.env } }), config)
  const events: AgentEvent[] = []
  for await (const event of agent.run('go')) events.push(event)
  const ending = agent.ending()
  await agent.close()
  return { at, events, outputs: outputs(events), ending }
}

/** Writes a script whose commands the gate does not see, and returns a call that runs it. */
function script(at: ReturnType<typeof place>, lines: string) {
  writeFileSync(join(at.cwd, 'src/run.sh'), lines)
  return shell('sh src/run.sh')
}

describe('what it can reach', () => {
  real('it writes only where it may, and reads no secret', async () => {
    const at = place()
    const lines = `echo x > src/new.txt; echo y > outside.txt; cat src/new.txt secret.txt .env
      cat ${root}/*/.ssh/id ~/.ssh/id; env; cat /proc/1/environ; ls -a /proc .`
    writeFileSync(join(at.cwd, 'secret.txt'), 'words of a secret')
    const ran = await run(
      { enabled: true, security: { allowWrite: ['./src'], denyRead: ['~/.ssh', './secret.txt'] } },
      {
        modelCall: calls(
          script(at, lines),
          { name: 'file_write', input: { path: 'outside.txt', content: 'z' } },
          { name: 'file_write', input: { path: 'src/tool.txt', content: 'z' } },
        ),
      },
      at,
    )
    expect(readFileSync(join(at.cwd, 'src/new.txt'), 'utf8')).toBe('x\n')
    expect(readFileSync(join(at.cwd, 'src/tool.txt'), 'utf8')).toBe('z')
    expect(existsSync(join(at.cwd, 'outside.txt'))).toBe(false)
    const all = ran.outputs.join('\n')
    expect(all).toContain('cannot create outside.txt: Read-only file system')
    for (const secret of ['from-the-file', 'a private key', 'key-of-the-parent', 'words of a secret']) expect(all).not.toContain(secret)
    // Its records are in its own home, which the parent keeps for the next run.
    const [inside = ''] = readdirSync(join(at.home, 'confined'))
    expect(existsSync(join(at.home, 'confined', inside, 'memory.sqlite'))).toBe(true)
  })

  real('without allowWrite the whole workspace is writable, except its protected names', async () => {
    const at = place()
    const lines = 'mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo y > top.txt'
    await run(open, { modelCall: calls(script(at, lines)) }, at)
    expect(readFileSync(join(at.cwd, 'top.txt'), 'utf8')).toBe('y\n')
    expect(existsSync(join(at.cwd, '.git/hooks/pre-commit'))).toBe(false)
  })

  real('neither its settings nor the lines of its parent can be changed from inside', async () => {
    const at = place()
    const lines = `echo broken > /run/braidclaw/config.toml; mv /run/braidclaw/config.toml /tmp; ls /run/braidclaw
      for f in /proc/[0-9]*/fd/0; do echo '{"cancel":true}' > $f; done 2>/dev/null; echo still here`
    const ran = await run(open, { modelCall: calls(script(at, lines)) }, at)
    expect(ran.outputs[0]).toContain('cannot create /run/braidclaw/config.toml: Read-only file system')
    expect(ran.outputs[0]).toContain('still here')
    expect(ran.outputs[0]).not.toContain('input-')
    expect(ran.ending?.code).toBe('answered')
  })
})

describe('what stays in the parent', () => {
  real('the tools and the model of the program run in this process, and the model sees the system prompt', async () => {
    const seen: { pid?: number; system?: string } = {}
    const tool: OwnTool = {
      name: 'where',
      description: 'Returns a process number',
      parameters: { type: 'object' },
      risk: 'low',
      execute: () => String(process.pid),
    }
    const modelCall: ModelCall = async function* (messages, _tools, _signal, { system }) {
      seen.system = system
      if (messages.at(-1)?.role === 'tool') yield { type: 'text', content: 'end' }
      else yield { type: 'tool_use', name: 'where', input: {} }
    }
    const ran = await run(open, { modelCall, tools: [tool] })
    expect(ran.outputs).toEqual([String(process.pid)])
    expect(seen.system).toContain('workspace')
  })

  real('the configured model is called outside, with budgets of the home that the keys belong to', async () => {
    const at = place()
    const fixture = join(at.cwd, '../fixture.json')
    writeFileSync(
      fixture,
      JSON.stringify({ responses: [{ tool_calls: [{ name: 'shell', arguments: { command: 'echo $HOME' } }] }, { text: 'done outside' }] }),
    )
    const ran = await run(open, { env: { BRAIDCLAW_MOCK_FIXTURE: fixture } }, at)
    expect(ran.outputs).toEqual(['/tmp'])
    expect(ran.ending).toMatchObject({ code: 'answered' })
    using shellOf = nest()
    const cost = await shellOf.run(['cost', '--json'], { env: { BRAIDCLAW_HOME: at.home } })
    expect(cost.stdout).toContain('"calls":2')
  })

  real('a question inside is answered by the program outside', async () => {
    const at = place()
    const asked = createAgent({ ...at, permissionMode: 'supervised', modelCall: calls(shell('echo allowed > src/asked.txt')) })
    const agent = sandboxAdapter.wrap(asked, narrow)
    const gates: string[] = []
    for await (const event of agent.run('go')) {
      if (event.type !== 'approval_gate') continue
      gates.push(event.gateId)
      expect(agent.gate(event.gateId)?.call.name).toBe('shell')
      expect(await agent.approve(event.gateId, { allow: true })).toBeUndefined()
    }
    await agent.close()
    expect(gates).toHaveLength(1)
    expect(readFileSync(join(at.cwd, 'src/asked.txt'), 'utf8')).toBe('allowed\n')
  })
})

describe('how it ends', () => {
  /** Returns the command lines of processes of this machine that contain the text. */
  const processes = (text: string) =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(text)
      } catch {
        return false
      }
    })

  real('cancel ends the child with everything in it; the next turn starts another one', async () => {
    const at = place()
    const mark = `9${process.pid}${Math.floor(performance.now())}`
    const turns = { count: 0 }
    const modelCall: ModelCall = async function* () {
      turns.count += 1
      if (turns.count === 1) yield { type: 'tool_use', ...shell(`touch src/began; sleep ${mark}`) }
      else yield { type: 'text', content: 'again' }
    }
    const agent = sandboxAdapter.wrap(createAgent({ ...at, permissionMode: 'full', modelCall }), narrow)
    const ended = (async () => {
      const types: string[] = []
      for await (const event of agent.run('go')) types.push(event.type)
      return types
    })()
    while (!existsSync(join(at.cwd, 'src/began'))) await Bun.sleep(5)
    agent.cancel()
    expect((await ended).at(-1)).toBe('done')
    expect(agent.ending()?.code).toBe('cancelled')
    while (processes(mark).length > 0) await Bun.sleep(5)
    const texts: string[] = []
    for await (const event of agent.run('more')) if (event.type === 'text' && !event.isPartial) texts.push(event.content)
    expect(texts.join('')).toBe('again')
    await agent.close()
  })

  real('it ends when its parent has ended, also when somebody removed the home meanwhile', async () => {
    const at = place()
    const program = join(at.cwd, '../program.ts')
    const words = {
      agent: join(import.meta.dir, '../../src/library/remote/agent.ts'),
      sandbox: join(import.meta.dir, '../../src/library/remote/sandbox.ts'),
    }
    writeFileSync(
      program,
      `import { rmSync } from 'node:fs'
import { createAgent } from ${JSON.stringify(words.agent)}
import { sandboxAdapter } from ${JSON.stringify(words.sandbox)}
const modelCall = async function* () { yield { type: 'text', content: 'hello' } }
const agent = sandboxAdapter.wrap(createAgent({ ...${JSON.stringify(at)}, modelCall }), { enabled: true })
for await (const event of agent.run('go')) if (event.type === 'done') console.log(event.result)
rmSync(${JSON.stringify(at.home)}, { recursive: true })
process.exit(0)
`,
    )
    const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', program], { stdout: 'pipe', stderr: 'inherit' })
    expect(await child.stdout.text()).toBe('hello\n')
    while (processes(at.cwd).length > 0) await Bun.sleep(5)
  })

  real('its time limit ends it, and the error names the limit', async () => {
    const ran = await run({ ...open, limits: { timeout: 2_000 } }, { modelCall: calls(shell('sleep 1000')) })
    expect(ran.events.at(-1)).toEqual({ type: 'done', stopReason: 'error' })
    expect(JSON.stringify(ran.events)).toContain('was ended after 2 s (limits.timeout)')
  })

  real('what takes too much memory ends the child, and the error says so', async () => {
    const at = place()
    const hungry = script(at, 'for i in 1 2 3 4 5 6; do head -c 200000000 /dev/zero > /tmp/f$i; done; sleep 100')
    const ran = await run({ ...open, limits: { memory: 600 * 2 ** 20 } }, { modelCall: calls(hungry) }, at)
    expect(ran.events.at(-1)).toEqual({ type: 'done', stopReason: 'error' })
    expect(JSON.stringify(ran.events)).toMatch(/was ended by its sandbox: .*memory/)
  })
})

describe('the sandbox of a whole agent', () => {
  real('stops every attempt to break out that the sandbox of a command stops', async () => {
    const ground = prepareGround()
    const created = await createSandbox({ ...ground.settings, kind: 'bubblewrap', spawnPlain, log() {} })
    if (!created.ok) throw new Error(created.missing)
    const { workspace, stateHome } = ground.settings
    const inside = join(stateHome, 'confined')
    mkdirSync(inside, { recursive: true })
    const readablePaths = [{ path: '/run/braidclaw', from: inside, writable: true as const }]
    const spawn: Sandbox['spawn'] = (plan) => created.sandbox.spawn({ ...plan, readablePaths, writablePaths: [workspace] })
    const results = await probeSandbox({ ...created.sandbox, spawn }, { ground })
    created.sandbox.close?.()
    ground.remove()
    expect(results.filter(({ stopped, skipped }) => !stopped && !skipped)).toEqual([])
    expect(results.length).toBeGreaterThan(20)
  })
})

describe('what is refused', () => {
  const first = async (config: SandboxConfig) => (await run(config, { modelCall: calls() })).events.find(({ type }) => type === 'error')

  real('paths that cannot be writable are named', async () => {
    expect(await first({ enabled: true, security: { allowWrite: ['../elsewhere'] } })).toMatchObject({
      message: expect.stringContaining('"../elsewhere" lies outside of the workspace'),
    })
    expect(await first({ enabled: true, security: { allowWrite: ['./missing'] } })).toMatchObject({
      message: expect.stringContaining('"./missing" does not exist'),
    })
  })

  test('limits that mean nothing, and an agent of unknown origin', () => {
    const agent = createAgent(place())
    expect(() => sandboxAdapter.wrap(agent, { enabled: true, limits: { memory: -1 } })).toThrow('limits.memory is -1')
    expect(() => sandboxAdapter.wrap(agent, { enabled: true, limits: { timeout: Number.NaN } })).toThrow('limits.timeout is NaN')
    const { options: _, ...stranger } = agent
    expect(() => sandboxAdapter.wrap(stranger, { enabled: true })).toThrow('not made by createAgent')
  })

  test('enabled: false changes nothing; an agent of this process can be wrapped, one with function threads cannot', () => {
    const agent = createInProcess(place())
    expect(sandboxAdapter.wrap(agent, { enabled: false })).toBe(agent)
    expect(sandboxAdapter.wrap(agent, open)).not.toBe(agent)
    const threads = [{ name: 'mine', bid: () => undefined }]
    expect(() => sandboxAdapter.wrap({ ...agent, options: { threads } as never }, open)).toThrow('cannot join an agent in another process')
  })

  test('at the command line the flags belong together', async () => {
    using at = nest()
    const alone = await at.run(['agent', '-m', 'x', '--allow-write', 'src'])
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('--allow-write belongs to --confined')])
    const both = await at.run(['agent', '-m', 'x', '--confined', '--sandbox', 'none'])
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('--sandbox is about single commands')])
  })
})

describe('agent --confined', () => {
  real('one turn at the command line answers, and its tools run inside', async () => {
    using at = nest()
    at.file('src/a.txt', '')
    const env = {
      BRAIDCLAW_MOCK_FIXTURE: at.fixture([
        { tool_calls: [{ name: 'shell', arguments: { command: 'echo $HOME > src/home' } }] },
        { text: 'Confined.' },
      ]),
    }
    const ran = await at.run(['agent', '--confined', '--allow-write', 'src', '--autonomy', 'full', '-m', 'go'], { env })
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('Confined.') })
    expect(readFileSync(join(at.workspace, 'src/home'), 'utf8')).toBe('/tmp\n')
  })

  real('a conversation at a terminal asks there, and /exit ends the child', async () => {
    using at = nest()
    const env = {
      BRAIDCLAW_MOCK_FIXTURE: at.fixture([
        { tool_calls: [{ name: 'shell', arguments: { command: 'echo yes > asked' } }] },
        { text: 'Confined again.' },
      ]),
    }
    const ran = await at.terminal(
      ['agent', '--confined'],
      [
        ['> ', 'go\r'],
        ['Approve?', 'y\r'],
        ['Confined again.', '/exit\r'],
      ],
      { env },
    )
    expect(ran).toMatchObject({ code: 0 })
    expect(readFileSync(join(at.workspace, 'asked'), 'utf8')).toBe('yes\n')
  })
})
