import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundlePlanck } from '../../scripts/planck.ts'
import { createExchange, type Exchange } from '../../src/service/fifo/exchange.ts'
import { startApi } from '../support/messages-api.ts'
import { needs } from '../support/needs.ts'
import { type AgentFolderFixture, den } from '../support/planck.ts'

let at: AgentFolderFixture
let exchanges: Exchange[]
beforeEach(async () => {
  at = await den('')
  exchanges = []
})
afterEach(async () => {
  for (const exchange of exchanges) await exchange.close()
  at[Symbol.dispose]()
})

function to(name: 'brain' | 'claw'): (text: string) => Promise<string> {
  const path = (end: string): string => join(at.fifos, `${name}_${end}`)
  const exchange = createExchange({ requestPath: path('in'), answerPath: path('out'), timeoutMs: 15_000 })
  exchanges.push(exchange)
  return async (text) => {
    const found = await exchange.ask(text)
    return found.ok ? found.answer : found.why
  }
}

const KEY = 'sk-ant-secret-of-the-test'
const request = JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'a\\nb "c" é' }] })
const brain = (base: string, env = {}) =>
  at.ours('brain.sh', { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: base, BRAIN_TRIES: '1', BRAIN_TIMEOUT: '2', ...env })

/** Every argument of every process that anybody can see. */
function commandLines(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
    .join('\n')
}

describe('planckclaw.sh', () => {
  test('says which key is missing before it makes anything', async () => {
    const { code, stderr } = await at.ours('planckclaw.sh', { PLANCKCLAW_DIR: join(at.dir, 'other') }).ended
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining('ANTHROPIC_API_KEY: is missing; write it into config.env')])
    expect(existsSync(join(at.dir, 'other'))).toBe(false)
  })

  test.if(needs('curl'))('makes the FIFOs and the files, starts four processes, and ends them with the last line', async () => {
    using api = startApi(({ tools, messages }) => `${messages.at(-1)?.content}, with ${tools?.length} tools`)
    const agent = join(at.dir, 'planck.mjs')
    await bundlePlanck(agent)
    const [fifos, memory] = [join(at.dir, 'new/fifos'), join(at.dir, 'new/memory')]
    writeFileSync(
      join(at.dir, 'config.env'),
      `export ANTHROPIC_API_KEY="${KEY}"\nexport PLANCKCLAW_DIR="${memory}"\nexport PLANCKCLAW_FIFOS="${fifos}"\n`,
    )
    const env = { ANTHROPIC_BASE_URL: api.base, PLANCKCLAW_AGENT: agent }
    const launcher = at.ours('planckclaw.sh', env, 'Hello\n')
    expect(await launcher.stdout).toBe('Hello, with 2 tools\n')
    expect((await launcher.ended).code).toBe(0)
    expect(commandLines()).not.toContain(fifos)
    expect(readFileSync(join(memory, 'soul.md'), 'utf8')).toBe('You are a helpful personal assistant.\n')
    expect(readFileSync(join(memory, 'history.jsonl'), 'utf8')).toContain('with 2 tools')
    for (const name of ['history.jsonl', 'summary.md']) expect(statSync(join(memory, name)).mode & 0o777).toBe(0o600)
  })
})

describe('brain.sh', () => {
  test('does not start without a key', async () => {
    const { code, stderr } = await at.ours('brain.sh').ended
    expect(code).not.toBe(0)
    expect(stderr).toContain('ANTHROPIC_API_KEY: set it to your key')
  })

  test.if(needs('curl'))('says timeout twice and fatal from the third failure in a row on, until one succeeds', async () => {
    using api = startApi((_, n) => (n < 4 ? { status: 529 } : 'well'))
    const bridge = brain(api.base)
    const ask = to('brain')
    const said = []
    for (let number = 0; number < 5; number += 1) said.push(await ask(`${request}\n\n`))
    expect(said.slice(0, 4)).toEqual(['{"error":"timeout"}', '{"error":"timeout"}', '{"error":"fatal"}', '{"error":"fatal"}'])
    expect(said[4]).toContain('"well"')
    await bridge.says(`brain: HTTP 529 from ${api.url}, try 1 of 1`)
  })

  test.if(needs('curl'))('says fatal at once when the request is refused, and why on stderr', async () => {
    using api = startApi(() => ({ status: 401 }))
    const bridge = brain(api.base, { BRAIN_TRIES: '3' })
    expect(await to('brain')(`${request}\n\n`)).toBe('{"error":"fatal"}')
    expect(api.asked).toHaveLength(1)
    await bridge.says('HTTP 401')
  })

  test('says timeout when nobody listens there', async () => {
    brain('http://127.0.0.1:9')
    expect(await to('brain')(`${request}\n\n`)).toBe('{"error":"timeout"}')
  })

  test.if(needs('curl'))('tries again what may pass', async () => {
    using api = startApi((_, n) => (n === 0 ? { status: 429 } : 'well'))
    brain(api.base, { BRAIN_TRIES: '2' })
    expect(await to('brain')(`${request}\n\n`)).toContain('"well"')
    expect(api.asked).toHaveLength(2)
  })

  test.if(needs('curl'))('hands over the request as it is, with the key where nobody sees it, and the answer on one line', async () => {
    const seen: string[] = []
    using api = startApi(() => {
      seen.push(commandLines())
      return { raw: '{\n  "content": [\r\n\n    {"type": "text", "text": "a\\nb \\\\ é"}\n  ]\n}\n' }
    })
    brain(api.base)
    const answer = await to('brain')(`\n${request}\n\n`)
    expect(answer).not.toContain('\n')
    expect(JSON.parse(answer)).toEqual({ content: [{ type: 'text', text: 'a\nb \\ é' }] })
    expect(JSON.stringify(api.asked[0])).toBe(request)
    expect(api.keys).toEqual([KEY])
    expect(seen.join()).toContain('brain.sh')
    expect(seen.join()).toContain('curl')
    expect(seen.join()).not.toContain(KEY)
  })
})

describe('claw.sh', () => {
  test('says so when there is no such tool, or no question', async () => {
    at.ours('claw.sh')
    const ask = to('claw')
    expect(await ask('rm\t{"path":"/"}\n')).toBe('error: no tool is called rm')
    expect(await ask('nonsense\n')).toBe('error: write list_tools, or name, tab, JSON')
  })

  test.each(['list_tools', '__list_tools__'])('lists its tools for %s', async (word) => {
    at.ours('claw.sh')
    const tools = JSON.parse(await to('claw')(`${word}\n`))
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(['get_time', 'system_status'])
    expect(tools[0].input_schema.type).toBe('object')
  })

  test('tells the time and how the machine is', async () => {
    at.ours('claw.sh')
    const ask = to('claw')
    expect(Math.abs(Number(await ask('get_time\t{}\n')) - Date.now() / 1000)).toBeLessThan(60)
    expect(await ask('system_status\t{}\n')).toMatch(/^uptime: \d+\.\d+ s\nload: .+\nMemTotal: .+\nMemAvailable: .+$/)
  })
})

describe('interact.sh', () => {
  /** Answers each message, after one for somebody else. */
  const echo = `#!/bin/sh
while IFS= read -r line; do printf '0\\tnot yours\\n%s\\\\nsecond\\\\ttab \\\\\\\\n\\n' "$line" > /tmp/planckclaw/interact_out; done < /tmp/planckclaw/interact_in`

  test('sends each line escaped, prints its answer and nobody else’s, and ends with its input', async () => {
    at.bridge(echo)
    const terminal = at.ours('interact.sh', {}, 'a\tb \\n "c" %s\n\n   \nlast without newline')
    expect(await terminal.stdout).toBe('a\tb \\n "c" %s\nsecond\ttab \\n\nlast without newline\nsecond\ttab \\n\n')
    expect((await terminal.ended).code).toBe(0)
    expect((await terminal.ended).stderr).toContain('left out an answer for channel 0')
  })
})
