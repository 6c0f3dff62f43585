/** `braidclaw bridge …` for another agent that speaks the six FIFOs: the pure router on Node, and by hand. */

import { beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundlePlanck } from '../../scripts/planck.ts'
import { createExchange } from '../../src/service/fifo/exchange.ts'
import { createFifos } from '../../src/service/fifo/fifo-folder.ts'
import { openLines } from '../../src/service/fifo/fifo-reader.ts'
import { openWriter } from '../../src/service/fifo/fifo-writer.ts'
import { type Invocation, type Nest, nest, type Started } from '../support/cli.ts'
import { background, daemon, folderOf, person, runs, stopping } from '../support/daemon.ts'
import { startApi } from '../support/messages-api.ts'
import { needs } from '../support/needs.ts'
import { call, home, scripted } from '../support/turns.ts'

const planck = join(mkdtempSync(join(tmpdir(), 'braidclaw-planck-')), 'planck.js')
beforeAll(async () => void (await bundlePlanck(planck)))

const planckOn = (at: Nest) => background(at, `exec node ${planck} 2>${at.dir}/planck.log`, { PLANCKCLAW_FIFOS: folderOf(at) })

/** Without a claw the router waits for one, each time. */
const emptyClaw = (at: Nest) =>
  background(at, `while read -r _; do printf '[]\\n\\n'; done <${folderOf(at)}/claw_in >${folderOf(at)}/claw_out`)

/** Until the test ends. */
function bridge(at: Nest, args: readonly string[], invocation: Invocation = {}): Started & AsyncDisposable {
  const started = at.start(['bridge', ...args, '--fifo-dir', folderOf(at)], { timeoutMs: 25_000, ...invocation })
  const end = async () => {
    if (runs(started.pid)) process.kill(started.pid, 'SIGTERM')
    await started.result
  }
  return { ...started, [Symbol.asyncDispose]: end }
}

/** Somebody's agent: asks the brain or the claw. */
async function asking(at: Nest, name: 'brain' | 'claw') {
  const dir = folderOf(at)
  await createFifos(dir)
  const exchange = createExchange({ requestPath: join(dir, `${name}_in`), answerPath: join(dir, `${name}_out`), timeoutMs: 10_000 })
  return {
    async ask(text: string): Promise<string> {
      const said = await exchange.ask(text)
      return said.ok ? said.answer : said.why
    },
    [Symbol.asyncDispose]: () => exchange.close(),
  }
}

test('the router on Node with our brain and our claw: a tool call goes through our gate and leaves a receipt', async () => {
  using at = home()
  at.file('notes.txt', 'the word is braid\n')
  const replies = scripted(at, [call('file_read', { path: 'notes.txt' }), { text: 'The word is braid.' }])
  await using brain = bridge(at, ['brain'], replies)
  await using claw = bridge(at, ['claw'])
  await Promise.all([brain.says('ready: '), claw.says('ready: ')])
  await using _ = planckOn(at)
  await using me = await person(folderOf(at))
  expect(await me.ask('What is the word?')).toBe('The word is braid.')
  const listed = await at.run(['receipt', 'list', '--json'])
  expect(listed.stdout).toContain('file_read')
  expect((await at.run(['receipt', 'verify'])).code).toBe(0)
})

test('bridges that start at the same moment make the folder together', async () => {
  using at = home()
  const all = Array.from({ length: 4 }, () => bridge(at, ['brain']))
  await Promise.all(all.map((each) => each.says('ready: ')))
  await Promise.all(all.map((each) => each[Symbol.asyncDispose]()))
})

test('bridge interact between a pipeline and the router: as many lines out as went in, then it ends', async () => {
  using at = home()
  await using brain = bridge(at, ['brain'], scripted(at, [{ text: 'one\ntwo' }, { text: 'three' }]))
  await brain.says('ready: ')
  await using _ = planckOn(at)
  await using nothing = emptyClaw(at)
  expect(nothing.pid).toBeGreaterThan(0)
  const { code, stdout, stderr } = await bridge(at, ['interact'], { stdin: 'a\tFirst\nno tab here\nb\tSecond' }).result
  expect([code, stdout]).toEqual([0, 'a\tone\\ntwo\nb\tthree\n'])
  expect(stderr).toContain('note: not sent: "no tab here" has no tab')
})

test('an answer that nobody here asked for is shown and not counted', async () => {
  using at = nest()
  const dir = folderOf(at)
  await createFifos(dir)
  using stop = aborting()
  const asked = openLines(join(dir, 'interact_in'), { signal: stop.signal })
  const out = openWriter(join(dir, 'interact_out'))
  const say = (line: string) => out.write(line, { timeoutMs: 1000 })
  const talking = bridge(at, ['interact'], { stdin: 'me\tHello\n' })
  expect((await asked.next()).value).toEqual({ ok: true, text: 'me\tHello' })
  await say('other\tnot yours\n')
  await say('nonsense\n')
  await Bun.sleep(100)
  expect(runs(talking.pid)).toBe(true)
  await say('me\tyours\n')
  expect(await talking.result).toMatchObject({ code: 0, stdout: 'other\tnot yours\nnonsense\nme\tyours\n' })
  out.close()
})

test('bridge cli is a person at our own daemon: text in, text out, only its own channel', async () => {
  using at = home()
  await using agent = stopping(await daemon(at, [], scripted(at, [{ text: 'two\nlines' }, { text: 'for me' }])))
  await using me = await person(agent.dir)
  await me[Symbol.asyncDispose]()
  const { code, stdout } = await bridge(at, ['cli'], { stdin: 'Hello\tthere\\n\n\n' }).result
  expect([code, stdout]).toEqual([0, 'two\nlines\n'])
  const other = await bridge(at, ['cli', '--channel', 'a\tb'], { stdin: 'x' }).result
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('write one word')])
})

test('bridge brain answers every frame: garbage and refusals with "fatal", what may pass with "timeout", the third time in a row "fatal"', async () => {
  using at = nest()
  const outcomes = [
    { status: 401 },
    { status: 529 },
    { status: 500 },
    { status: 503 },
    { status: 500 },
    'well again',
    { status: 500 },
  ] as const
  using api = startApi((_, n) => outcomes[n] ?? { status: 500 })
  at.config(`[providers.models.far]\nkind = "anthropic"\nmodel = "m"\nbase_url = "${api.base}/v1"\nstream = false\nmax_retries = 0\n`)
  await using brain = bridge(at, ['brain'], { env: { BRAIDCLAW_DEFAULT_PROVIDER: 'far', ANTHROPIC_API_KEY: 'sk-ant-not-a-secret' } })
  await brain.says('ready: ')
  await using agent = await asking(at, 'brain')
  const question = '{"model":"theirs","max_tokens":77,"system":"Soul.","messages":[{"role":"user","content":"Hello"}]}\n\n'
  const words: string[] = []
  for (const frame of ['garbage\n\n', '{"messages":[]}\n\n', ...Array(7).fill(question)]) words.push(await agent.ask(frame))
  const error = (word: string) => JSON.stringify({ error: word })
  const [fatal, timeout] = [error('fatal'), error('timeout')]
  expect(words.filter((_, n) => n !== 7)).toEqual([fatal, fatal, fatal, timeout, timeout, fatal, fatal, timeout])
  expect(JSON.parse(words[7] ?? '')).toMatchObject({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'well again' }],
    stop_reason: 'end_turn',
  })
  expect(api.asked[0]).toMatchObject({ model: 'm', max_tokens: 77 })
})

test('bridge claw: both words list our tools, a denial is said in the result, nonsense is answered, and the way to a yes is for people alone', async () => {
  using at = home()
  await using claw = bridge(at, ['claw'])
  await claw.says('ready: ')
  await using agent = await asking(at, 'claw')
  const list = JSON.parse(await agent.ask('__list_tools__\n'))
  expect(list.map(({ name }: { name: string }) => name)).toContain('file_read')
  expect(list[0]).toHaveProperty('input_schema')
  expect(JSON.parse(await agent.ask('list_tools\n'))).toEqual(list)
  expect(list.map(({ name }: { name: string }) => name)).not.toContain('ask_user')

  expect(await agent.ask('file_read\t{"path":"/etc/shadow"}\n')).toMatch(/^error: /)
  expect(await agent.ask('no_such_tool\t{}\n')).toMatch(/^error: .*no_such_tool/s)
  expect(await agent.ask('time\tnot json\n')).toBe('error: time: the arguments are not a JSON object')
  expect(await agent.ask('what is this\n')).toBe('error: the line has no tab; write list_tools, or name, tab, JSON')
  const unapproved = await agent.ask('file_write\t{"path":"a.txt","content":"x"}\n')
  expect(unapproved).toMatch(/^error: /)
  expect(unapproved).not.toContain('approvals allow')
  await claw.says('braidclaw approvals allow ')
  expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
  at.file('b.txt', 'line\n\nafter a blank one\n')
  expect(await agent.ask('file_read\t{"path":"b.txt"}\n')).toContain('after a blank one')
})

test('bridge claw does not grow with the calls it has answered', async () => {
  using at = home()
  await using claw = bridge(at, ['claw'])
  await claw.says('ready: ')
  await using agent = await asking(at, 'claw')
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${claw.pid}/status`, 'utf8'))?.[1])
  const calls = async (count: number) => {
    for (let n = 0; n < count; n++) expect(await agent.ask('time\t{}\n')).not.toStartWith('error')
  }
  await calls(60)
  const before = resident()
  await calls(200)
  expect(resident() - before).toBeLessThan(20_000)
})

test('a bridge whose FIFOs are taken away ends with 1 and says what to do; one that is told to stop ends with 0', async () => {
  using at = home()
  const brain = bridge(at, ['brain'])
  await brain.says('ready: ')
  process.kill(brain.pid, 'SIGTERM')
  expect((await brain.result).code).toBe(0)
  const claw = bridge(at, ['claw'])
  await claw.says('ready: ')
  renameSync(folderOf(at), `${folderOf(at)}-gone`)
  const { code, stderr } = await claw.result
  expect([code, stderr]).toEqual([1, expect.stringContaining('start again to open the new one')])
})

test.if(needs('curl'))('a provider of kind "fifo" answers one-shot turns too: whoever holds brain_in is the model', async () => {
  using at = nest()
  using api = startApi(({ messages }) => `heard: ${JSON.stringify(messages.at(-1)?.content)}`)
  at.config(`[providers.models.f]\nkind = "fifo"\ndir = "${folderOf(at)}"\ntotal_timeout_s = 5\n`)
  const env = { BRAIDCLAW_DEFAULT_PROVIDER: 'f' }
  const without = await at.run(['agent', '-m', 'Hello'], { env })
  expect([without.code, without.stderr]).toEqual([8, expect.stringContaining('cannot be used')])
  await createFifos(folderOf(at))
  const script = join(import.meta.dir, '../../bridges/brain.sh')
  await using _ = background(at, `exec sh ${script}`, {
    PLANCKCLAW_FIFOS: folderOf(at),
    ANTHROPIC_BASE_URL: api.base,
    ANTHROPIC_API_KEY: 'k',
  })
  expect(await at.run(['agent', '-m', 'Hello'], { env })).toMatchObject({ code: 0, stdout: 'heard: "Hello"\n' })
  expect(api.keys).toEqual(['k'])
  expect(api.asked[0]?.tools?.map(({ name }) => name)).toContain('file_read')
})

function aborting(): AbortController & Disposable {
  const controller = new AbortController()
  return Object.assign(controller, { [Symbol.dispose]: () => controller.abort() })
}
