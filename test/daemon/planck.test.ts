import { describe, expect, test } from 'bun:test'
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PLANCK_BYTES } from '../../scripts/planck.ts'
import { type Person, person } from '../support/daemon.ts'
import { type Answered, type Payload, startApi } from '../support/messages-api.ts'
import { needs } from '../support/needs.ts'
import { type AgentFolderFixture, commands, den, fileKb, floorKb, peakKb, runtimes, type Scene, scenes } from '../support/planck.ts'
import { claw, curlBrain, greeter, interact, scanner, script } from '../support/planck-scripts.ts'
import { isDeep } from '../support/tier.ts'

let bundle: Scene['bundle']
let at: AgentFolderFixture
let human: Person
scenes((scene) => {
  ;({ bundle, at, human } = scene)
})

/** A brain that answers every request with these words, whatever was asked. */
const says = (frame: string): string => `#!/bin/sh
while IFS= read -r line; do [ -n "$line" ] || printf '%s\\n\\n' '${frame}' > /tmp/planckclaw/brain_out; done < /tmp/planckclaw/brain_in`
const TEXT = says('{"content":[{"type":"text","text":"yes"}]}')

/** A conversation's words, as the brain was asked for them, without what depends on the clock. */
function told(asked: readonly Payload[]): string {
  return JSON.stringify(asked)
    .replace(/"content":"\d{10}"/g, '"content":"NOW"')
    .replace(/uptime: \d+\\nload: [0-9. ]+/g, 'STATUS')
}

function brainOf(payload: Payload): Answered {
  const last = payload.messages.at(-1)?.content
  if (typeof last !== 'string') return `The tool said: ${JSON.stringify(last).length > 20 ? 'enough' : 'little'}`
  if (last.includes('time')) return { name: 'get_time', input: {} }
  return last.includes('status') ? { name: 'system_status', input: { deep: 'a\tb\n' } } : `You said "${last}"\nand a tab\there\\`
}

test('is at most 8,192 bytes, and needs no folder around it', async () => {
  expect(bundle.bytes).toBeLessThanOrEqual(PLANCK_BYTES)
  expect(readFileSync(join(import.meta.dir, '../../README.md'), 'utf8')).toContain(`${bundle.bytes.toLocaleString('en')} bytes`)
  expect(readFileSync(bundle.file, 'utf8')).toStartWith('#!/usr/bin/env node\n')
  expect(readFileSync(bundle.file, 'utf8')).not.toContain('require(')
  const copy = join(at.dir, 'planck.mjs')
  copyFileSync(bundle.file, copy)
  for (const runtime of runtimes) {
    const child = Bun.spawnSync([...commands[runtime], copy], { env: { PLANCKCLAW_FIFOS: '/etc' }, cwd: at.dir })
    expect(child.stderr.toString()).toContain('/etc is not a private folder')
    expect(child.exitCode).toBe(1)
  }
})

/** Both hold the same conversation (below); the fast tier tries the rest on one of them. */
describe.each(isDeep ? runtimes : (['node'] as const))('on %s', (runtime) => {
  const planck = (env: { readonly [name: string]: string } = {}) => at.planck(runtime, { PLANCKCLAW_TIMEOUT: '20', ...env })

  describe('refuses to start', () => {
    test('where another serves the FIFOs, and not where one has died', async () => {
      at.bridge(TEXT)
      at.bridge(claw)
      const first = planck()
      expect(await human.ask('hello')).toBe('yes')
      const { code, stderr } = await planck().ended
      expect([code, stderr]).toEqual([1, expect.stringContaining(`another agent serves ${at.fifos}`)])
      expect(await human.ask('hello')).toBe('yes')
      await first.kill()
      planck()
      // Those of the original end with their agent.
      at.bridge(TEXT)
      at.bridge(claw)
      expect(await human.ask('hello')).toBe('yes')
    })

    test.each(['soul.md', 'summary.md', 'history.jsonl'])('or to go on with a %s that is no file', async (name) => {
      at.bridge(TEXT)
      at.bridge(claw)
      Bun.spawnSync(['mkfifo', join(at.dir, 'memory', name)])
      const router = planck()
      await human.say('hello')
      const { code, stderr } = await router.ended
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${join(at.dir, 'memory', name)} is not a file`)])
    })

    test.each([
      [{ HISTORY_MAX: 'many' }, 'HISTORY_MAX: "many" is not a whole number'],
      [{ HISTORY_KEEP: '-1' }, 'HISTORY_KEEP: "-1" is not a whole number'],
      [{ HISTORY_MAX: '40' }, 'HISTORY_KEEP must be less than HISTORY_MAX'],
      [{ PLANCKCLAW_FIFOS: '/etc' }, '/etc is not a private folder (user 0, mode 40755)'],
    ] as const)('with %j', async (env, message) => {
      const { code, stderr } = await planck(env).ended
      expect(stderr).toContain(message)
      expect(code).toBe(1)
    })
  })

  test.each([
    ['{"error":"timeout"}', "I'm temporarily unavailable."],
    ['{"error":"fatal"}', 'Temporarily unavailable'],
    ['{"type":"error","error":{"type":"overloaded_error"}}', "I'm temporarily unavailable."],
    ['<html>', 'Temporarily unavailable'],
    ['{"content":"\\"error\\""}', 'Temporarily unavailable'],
  ])('apologises for %s', async (frame, apology) => {
    planck()
    at.bridge(says(frame))
    at.bridge(claw)
    expect(await human.ask('hello')).toBe(apology)
    expect(await human.ask('hello again')).toBe(apology)
    expect(at.memory('history.jsonl') ?? '').toBe('')
  })

  test('an empty answer of the brain is an empty line, and is not remembered', async () => {
    planck()
    at.bridge(says('{"content":[],"stop_reason":"end_turn"}'))
    at.bridge(claw)
    const heard = at.bridge(`#!/bin/sh\nexec cat </tmp/planckclaw/interact_out >&2`)
    at.bridge("#!/bin/sh\nprintf '7\\thello\\n' > /tmp/planckclaw/interact_in")
    await heard.says('7\t\n')
    expect(at.memory('history.jsonl')).toBe('')
  })

  test('makes the files of the memory at its start, and leaves those that are there', async () => {
    at.remember('summary.md', 'They like tea.\n')
    planck()
    while (at.memory('history.jsonl') === undefined) await Bun.sleep(10)
    expect(at.memory('soul.md')).toBe('You are a helpful personal assistant.\n')
    expect(at.memory('summary.md')).toBe('They like tea.\n')
    for (const name of ['soul.md', 'history.jsonl']) expect(statSync(join(at.dir, 'memory', name)).mode & 0o777).toBe(0o600)
  })

  test('apologises when no brain comes, and answers the next message when one is back', async () => {
    planck({ PLANCKCLAW_TIMEOUT: '1' })
    at.bridge(claw)
    expect(await human.ask('hello')).toBe("I'm temporarily unavailable.")
    const brain = at.bridge(TEXT)
    expect(await human.ask('hello')).toBe('yes')
    await brain.kill()
    expect(await human.ask('hello')).toBe("I'm temporarily unavailable.")
    at.bridge(TEXT)
    expect(await human.ask('hello')).toBe('yes')
  })

  test('answers lines that are messages, and says what is wrong with those that are none', async () => {
    const router = planck()
    at.bridge(TEXT)
    at.bridge(claw)
    await human.write('no tab\n\tno channel\n7\t \n\n8\thalf')
    await human.write(' a line\n9\tnext\r\n')
    expect([await human.hear(), await human.hear()].map(({ channel }) => channel)).toEqual(['8', '9'])
    await router.says('interact_in: no tab')
    await router.says('interact_in: no channel')
    await router.says('interact_in: no text')
    expect(at.memory('history.jsonl')).toContain('{"role":"user","content":"half a line"}\n')
    expect(at.memory('history.jsonl')).toContain('{"role":"user","content":"next"}\n')
  })

  test('keeps a message that was cut off apart from the next: its writer is told, and nobody else', async () => {
    const fifos = join(at.dir, 'unheld')
    planck({ PLANCKCLAW_FIFOS: fifos })
    while (!statSync(join(fifos, '.server.lock'), { throwIfNoEntry: false })) await Bun.sleep(10)
    for (const bridge of [TEXT, claw]) at.bridge(bridge.replaceAll('/tmp/planckclaw', fifos))
    const heard = at.bridge(`#!/bin/sh\nexec cat <${fifos}/interact_out >&2`)
    for (const half of ['8\\thalf', '8']) {
      const writer = at.bridge(`#!/bin/sh\nexec 5>${fifos}/interact_in; printf '${half}' >&5; echo half >&2; sleep 600`)
      await writer.says('half')
      await writer.kill()
      await Bun.sleep(100)
      at.bridge(`#!/bin/sh\nprintf '9\\tnext\\n' > ${fifos}/interact_in`)
      await heard.says(half === '8' ? '9\tyes\n9\tyes\n' : '8\tcut off: it has no newline\n9\tyes\n')
    }
    expect(at.memory('history.jsonl')).toBe('{"role":"user","content":"next"}\n{"role":"assistant","content":"yes"}\n'.repeat(2))
  })

  test.if(needs('curl'))('bears messages and answers larger than a pipe', async () => {
    using api = startApi((payload) => String(payload.messages.at(-1)?.content).toUpperCase())
    planck()
    at.bridge(curlBrain, { API_URL: api.url })
    at.bridge(claw)
    const long = 'é "quoted" \\ and\ttabs\n'.repeat(5000)
    expect(await human.ask(long)).toBe(long.toUpperCase())
  })

  test('stops a brain that only ever wants tools', async () => {
    planck()
    at.bridge(says('{"content":[{"type":"tool_use","id":"t","name":"get_time","input":{}}],"stop_reason":"tool_use"}'))
    at.bridge(claw)
    expect(await human.ask('hello')).toBe('I stopped: too many rounds of tools.')
  })

  test.if(needs('curl'))('answers all tools of one reply, those too that fail', async () => {
    const uses = ['get_time', 'nobody\\nknows'].map((name, n) => `{"type":"tool_use","id":"t${n}","name":"${name}","input":{"a":1}}`)
    using api = startApi((_, n) => (n === 0 ? { raw: `{"content":[${uses.join()}],"stop_reason":"tool_use"}` } : 'done'))
    planck({ PLANCKCLAW_TIMEOUT: '3' })
    at.bridge(curlBrain, { API_URL: api.url })
    at.bridge(claw)
    expect(await human.ask('go')).toBe('done')
    expect(api.asked[1]?.messages.slice(1)).toEqual([
      { role: 'assistant', content: uses.map((use) => JSON.parse(use)) },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't0', content: expect.stringMatching(/^\d+$/), is_error: false },
          { type: 'tool_result', tool_use_id: 't1', content: 'unknown tool', is_error: false },
        ],
      },
    ])
  })

  test.if(needs('curl'))('waits with the first message for a claw that starts late: no turn is without its tools', async () => {
    using api = startApi((payload) => (payload.tools ? 'with' : 'without'))
    planck()
    at.bridge(curlBrain, { API_URL: api.url })
    await human.say('hello')
    // Longer than both words of the discovery may take.
    await Bun.sleep(3_000)
    at.bridge(claw)
    expect(await human.hear()).toMatchObject({ text: 'with' })
  })

  test.if(needs('curl'))('asks without tools when no claw answers, and finds one that knows only the other word', async () => {
    using api = startApi((payload) => (payload.tools ? 'with' : 'without'))
    planck({ PLANCKCLAW_TIMEOUT: '3' })
    at.bridge(curlBrain, { API_URL: api.url })
    expect(await human.ask('hello')).toBe('without')
    script(join(at.dir, 'tools.d', 'greet.sh'), greeter)
    at.bridge(scanner)
    expect(await human.ask('hello')).toBe('with')
    expect(api.asked[1]?.tools?.[0]?.name).toBe('greet')
  })

  test.if(needs('curl'))('asks for the model that PLANCKCLAW_MODEL names', async () => {
    using api = startApi(({ model }) => model)
    planck({ PLANCKCLAW_MODEL: 'small-model' })
    at.bridge(curlBrain, { API_URL: api.url })
    at.bridge(claw)
    expect(await human.ask('Who are you?')).toBe('small-model')
  })

  test('makes the FIFOs when they are missing', async () => {
    const other = join(at.dir, 'others')
    planck({ PLANCKCLAW_FIFOS: other })
    while (!statSync(join(other, 'claw_out'), { throwIfNoEntry: false })) await Bun.sleep(10)
    for (const bridge of [TEXT, claw]) at.bridge(bridge.replaceAll('/tmp/planckclaw', other))
    await using somebody = await person(other)
    expect(await somebody.ask('hello')).toBe('yes')
  })
})

test.if(needs('curl'))('holds the same conversation on both, byte for byte, with bridges as the original has them', async () => {
  const transcripts = []
  for (const runtime of runtimes) {
    using own = await den(bundle.file)
    using api = startApi(brainOf)
    own.remember('soul.md', 'You are Planck.\nBe brief.\n')
    writeFileSync(join(own.dir, 'said.txt'), 'Hello "there"\\nline two\nwhat time is it?\nstatus please\n')
    own.bridge(interact)
    own.bridge(curlBrain, { API_URL: api.url, ANTHROPIC_API_KEY: 'k' })
    own.bridge(claw)
    own.planck(runtime)
    const heard = join(own.dir, 'heard.txt')
    const answers = () => (statSync(heard, { throwIfNoEntry: false }) ? readFileSync(heard, 'utf8') : '')
    while (answers().split('\n').length < 4) await Bun.sleep(20)
    transcripts.push({ heard: answers(), asked: told(api.asked), history: own.memory('history.jsonl') })
    expect(JSON.stringify(api.asked[0])).toBe(
      JSON.stringify({
        model: 'claude-haiku-4-5-20251001',
        max_tokens: 1024,
        system: 'You are Planck.\nBe brief.',
        messages: [{ role: 'user', content: 'Hello "there"\nline two' }],
        tools: api.asked[0]?.tools,
      }),
    )
    expect(api.asked[0]?.tools).toHaveLength(2)
  }
  expect(transcripts[0]?.heard).toBe(
    String.raw`42 says You said "Hello "there"\nline two"\nand a tab\there\\
42 says The tool said: enough
42 says The tool said: enough
`,
  )
  expect(transcripts[1]).toEqual(transcripts[0])
})

/** Returns the peak of one router that passes on twenty messages, and how much of it is not mapped from a file, in KiB. */
async function peakOf(runtime: (typeof runtimes)[number]): Promise<{ readonly peak: number; readonly own: number }> {
  using own = await den(bundle.file)
  await using somebody = await person(own.fifos)
  own.bridge(TEXT)
  own.bridge(claw)
  const { pid } = own.planck(runtime)
  for (let number = 0; number < 20; number += 1) await somebody.ask(`message ${number}`)
  return { peak: peakKb(pid), own: peakKb(pid) - fileKb(pid) }
}

test('needs at most 30 MiB on Bun, and on Node little more than Node itself', async () => {
  // How much of its own file a runtime has mapped depends on what the system has cached, by 2 MiB and more: the bound moves with a floor.
  const allowed = { bun: Math.max(30 * 1024, floorKb('bun', { BUN_JSC_useJIT: '0' }) + 6_144), node: floorKb('node') + 12_288 }
  for (const runtime of runtimes) {
    const { peak, own } = await peakOf(runtime)
    expect(peak).toBeLessThanOrEqual(allowed[runtime])
    // What the router itself takes depends on nothing else.
    expect(own).toBeLessThanOrEqual({ bun: 4_608, node: 12_288 }[runtime])
  }
})
