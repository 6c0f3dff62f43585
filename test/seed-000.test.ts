/** Seed 000 through the real executable: bridges in shell that know nothing of us, on both sides of the six FIFOs. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentFile } from './support/agent-files.ts'
import { nest } from './support/cli.ts'
import { background, daemon, folderOf, historyOf, launch, person, stopping } from './support/daemon.ts'
import { startApi } from './support/messages-api.ts'
import { needs } from './support/needs.ts'
import { planckHome } from './support/planck-home.ts'
import { claw, curlBrain, greeter, interact, scanner, script } from './support/planck-scripts.ts'
import { shell } from './support/shell.ts'
import { home, scripted } from './support/turns.ts'
import { until } from './support/until.ts'

const curled = test.if(needs('curl'))

/** A claw without tools: the soul speaks alone, and nobody waits for a list. */
const emptyClaw = 'while read -r _; do printf "[]\\n\\n"; done <$PLANCKCLAW_FIFOS/claw_in >$PLANCKCLAW_FIFOS/claw_out'
const noTools = ['--bridge', `claw=${emptyClaw}`]
const key = { ANTHROPIC_API_KEY: 'sk-ant-not-a-secret' }

test('printf into interact_in, and while read from interact_out, are all it takes', async () => {
  using at = nest()
  await using agent = stopping(await daemon(at, [], scripted(at, [{ text: 'one\nline\tand \\ more' }, { text: 'two' }])))
  const { stdout } = await shell(
    at,
    `cd ${agent.dir}; T=$(printf '\\t')
     while IFS="$T" read -r channel text; do echo "$channel: $text"; [ "$text" = two ] && break; done < interact_out &
     printf '7\\tHello\\n' > interact_in; printf '8\\tAnd \\\\n on\\n' > interact_in; wait`,
  )
  expect(stdout).toBe('7: one\\nline\\tand \\\\ more\n8: two\n')
  expect(historyOf(at)).toEqual(['Hello', 'one\nline\tand \\ more', 'And \n on', 'two'])
})

test("the six FIFOs are the owner's alone, and gone when the daemon is", async () => {
  using at = nest()
  const agent = await daemon(at)
  const names = ['interact', 'brain', 'claw'].flatMap((name) => [`${name}_in`, `${name}_out`])
  for (const path of ['', ...names]) expect(statSync(join(agent.dir, path)).mode & 0o077).toBe(0)
  expect(names.every((name) => statSync(join(agent.dir, name)).isFIFO())).toBe(true)
  expect((await agent.stop()).code).toBe(0)
  expect(existsSync(agent.dir)).toBe(false)
})

curled('a curl brain, a claw and an interact bridge written for the original run unmodified under the launcher', async () => {
  using at = nest()
  at.config('[security]\nallow_tools = ["get_time"]\n')
  using api = startApi(({ messages }, n) =>
    n === 0 ? { name: 'get_time', input: { zone: 'UTC' } } : `It is ${JSON.stringify(messages.at(-1)?.content)}`,
  )
  const { through, args, fitted } = planckHome(at)
  for (const [name, text] of Object.entries({ curlBrain, claw, interact })) script(join(at.dir, `${name}.sh`), fitted(text))
  writeFileSync(join(at.dir, 'said.txt'), 'What time is it?\n')
  const bridges = ['brain=./curlBrain.sh', 'claw=./claw.sh', 'interact=./interact.sh'].flatMap((bridge) => ['--bridge', bridge])
  await using agent = stopping(launch(at, [...args, ...bridges], { through, cwd: at.dir, env: { API_URL: api.url, ...key } }))
  await agent.says('ready: /')
  const heard = join(at.dir, 'heard.txt')
  await until(() => existsSync(heard) && readFileSync(heard, 'utf8').endsWith('\n'))
  expect(readFileSync(heard, 'utf8')).toMatch(/^42 says It is .*"tool_result".*"\d{10}".*\n$/)

  const [first, second] = api.asked
  expect(api.keys).toEqual([key.ANTHROPIC_API_KEY, key.ANTHROPIC_API_KEY])
  expect(first).toMatchObject({
    model: 'claude-haiku-4-5-20251001',
    max_tokens: 1024,
    system: 'You are a helpful personal assistant.',
    messages: [{ role: 'user', content: 'What time is it?' }],
    tools: [{ name: 'get_time', input_schema: { type: 'object', properties: {} } }, { name: 'system_status' }],
  })
  expect(second?.messages.slice(1)).toMatchObject([
    { role: 'assistant', content: [{ type: 'tool_use', name: 'get_time', input: { zone: 'UTC' } }] },
    { role: 'user', content: [{ type: 'tool_result', content: expect.stringMatching(/^\d{10}$/) }] },
  ])
  expect((await at.run(['receipt', 'list'])).stdout).toContain('get_time')
})

test('a claw that looks through scripts for #TOOLS: is found under its other word, and a new script counts at once', async () => {
  using at = nest()
  at.config('[security]\nallow_tools = ["greet", "shout"]\n')
  const greet = { tool_calls: [{ name: 'greet', arguments: { who: 'Ada' } }] }
  const shout = { tool_calls: [{ name: 'shout', arguments: { who: 'Ada' } }] }
  const { through, args, fitted, dir } = planckHome(at)
  script(join(at.dir, 'scanner.sh'), fitted(scanner))
  script(join(at.dir, 'tools.d/greet.sh'), greeter)
  const answers = scripted(at, [greet, { text: 'greeted' }, shout, { text: 'shouted' }])
  await using agent = stopping(launch(at, [...args, '--bridge', 'claw=./scanner.sh'], { through, cwd: at.dir, ...answers }))
  await agent.says('ready: /')
  await using me = await person(dir)
  expect(await me.ask('Greet Ada')).toBe('greeted')
  script(join(at.dir, 'tools.d/shout.sh'), greeter.replaceAll('greet', 'shout').replace('Good day', 'HEY'))
  expect(await me.ask('Shout at Ada')).toBe('shouted')
  const told = readFileSync(agentFile(at, 'agent.jsonl'), 'utf8')
  expect(told).toContain('Good day, Ada.')
  expect(told).toContain('HEY, Ada.')
})

curled('a claw beside our own tools: a name of ours is refused to it, and a call that nobody allowed waits for a yes', async () => {
  using at = nest()
  using api = startApi((_, n) => (n === 0 ? { name: 'greet', input: {} } : 'I asked.'))
  const theirs = ['file_read', 'greet'].map((name) => ({
    name,
    description: `Does ${name}.`,
    input_schema: { type: 'object', properties: {} },
  }))
  const list = `claw=while read -r line; do echo "$line" >>${at.dir}/asked; printf '%s\\n\\n' '${JSON.stringify(theirs)}'; done <$PLANCKCLAW_FIFOS/claw_in >$PLANCKCLAW_FIFOS/claw_out`
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', '--claw', 'both', '--bridge', list]))
  await using brain = background(at, curlBrain.replaceAll('/tmp/planckclaw', agent.dir), { API_URL: api.url })
  await using me = await person(agent.dir)
  expect(await me.ask('Greet Ada')).toMatch(/^I asked\.\n\n\[approval needed: greet/)
  const toolsForModel = api.asked[0]?.tools?.map(({ name, description }) => `${name}: ${description}`) ?? []
  expect(toolsForModel).toContain('greet: Does greet.')
  expect(toolsForModel.filter((tool) => tool.startsWith('file_read: '))).toEqual([expect.not.stringContaining('Does file_read')])
  expect(readFileSync(join(at.dir, 'asked'), 'utf8')).not.toContain('greet\t')
  await agent.says(`the claw's \\"file_read\\" has the name of a built-in tool`)
  expect(brain.pid).toBeGreaterThan(0)
})

curled('whoever starts first waits for the others: a message, then the daemon, then the brain of docs/daemon.md', async () => {
  using at = nest()
  using api = startApi(() => 'at last')
  const page = readFileSync(join(import.meta.dir, '../docs/daemon.md'), 'utf8')
  const documented = /```sh\n(#!\/bin\/sh\n# brain\.sh.*?)```/s.exec(page)?.[1] ?? ''
  await using me = await person(folderOf(at))
  await me.say('Anybody?')
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', ...noTools]))
  await using brain = background(
    at,
    documented.replaceAll('/tmp/planckclaw', agent.dir).replace('https://api.anthropic.com', api.base),
    key,
  )
  expect(await me.hear()).toEqual({ channel: 'me', text: 'at last' })
  expect(brain.pid).toBeGreaterThan(0)
})

test("a brain that dies in the middle of a question is given the next one, and its late answer is nobody's", async () => {
  using at = home('[providers.models.b]\nkind = "fifo"\ntotal_timeout_s = 1\n')
  await using agent = stopping(await daemon(at, noTools, { env: { BRAIDCLAW_DEFAULT_PROVIDER: 'b' } }))
  await using me = await person(agent.dir)
  const taken = join(at.dir, 'taken')
  {
    await using dying = background(at, `cat ${agent.dir}/brain_in > ${taken}`)
    expect(await me.ask('First?')).toBe("I'm temporarily unavailable.")
    expect(readFileSync(taken, 'utf8')).toContain('First?')
    expect(dying.pid).toBeGreaterThan(0)
  }
  const late = (words: string) => `printf '{"content":[{"type":"text","text":"${words}"}]}\\n\\n' > ${agent.dir}/brain_out`
  await using back = background(
    at,
    `${late('to the first')}; while read -r line; do [ -z "$line" ] && ${late('to the second')}; done < ${agent.dir}/brain_in`,
  )
  expect(await me.ask('Second?')).toBe('to the second')
  expect(historyOf(at)).toEqual(['Second?', 'to the second'])
  expect(back.pid).toBeGreaterThan(0)
})

test('both apologies, and it goes on listening; neither is remembered', async () => {
  using at = nest()
  const vendor = '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
  const well = '{"content":[{"type":"text","text":"well again"}]}'
  const answers = ['{"error":"timeout"}', '{"error":"fatal"}', 'no JSON', vendor, well]
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', ...noTools]))
  const script = answers.map((answer) => `while read -r line && [ -n "$line" ]; do :; done; printf '%s\\n\\n' '${answer}' >&4`).join('\n')
  await using brain = background(at, `exec <${agent.dir}/brain_in 4>${agent.dir}/brain_out\n${script}\nsleep 60`)
  await using me = await person(agent.dir)
  const heard: string[] = []
  for (const n of [1, 2, 3, 4, 5]) heard.push(await me.ask(`Try ${n}`))
  const [passing, failed] = ["I'm temporarily unavailable.", 'Temporarily unavailable']
  expect(heard).toEqual([passing, failed, failed, passing, 'well again'])
  expect(historyOf(at)).toEqual(['Try 5', 'well again'])
  expect(brain.pid).toBeGreaterThan(0)
})

test('the files of the memory are there before the first message, and an empty answer of the brain is an empty line', async () => {
  using at = nest()
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', ...noTools]))
  expect(readFileSync(agentFile(at, 'soul.md'), 'utf8')).toBe('You are a helpful personal assistant.\n')
  for (const name of ['history.jsonl', 'summary.md']) expect(readFileSync(agentFile(at, name), 'utf8')).toBe('')
  const empty = '{"content":[],"stop_reason":"end_turn"}'
  await using brain = background(
    at,
    `while read -r line; do [ -n "$line" ] || printf '%s\\n\\n' '${empty}' >&4; done <${agent.dir}/brain_in 4>${agent.dir}/brain_out`,
  )
  const { stdout } = await shell(at, `head -1 ${agent.dir}/interact_out & printf '7\\tHello\\n' > ${agent.dir}/interact_in; wait`)
  expect(stdout).toBe('7\t\n')
  expect(historyOf(at)).toEqual([])
  expect(brain.pid).toBeGreaterThan(0)
})

curled('soul.md counts from the next message on, and the last HISTORY_KEEP messages go along', async () => {
  using at = nest()
  using api = startApi((_, n) => `answer ${n + 1}`)
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', ...noTools], { env: { HISTORY_KEEP: '4', HISTORY_MAX: '100' } }))
  await using brain = background(at, curlBrain.replaceAll('/tmp/planckclaw', agent.dir), { API_URL: api.url })
  await using me = await person(agent.dir)
  for (const n of [1, 2, 3]) await me.ask(`question ${n}`)
  writeFileSync(agentFile(at, 'soul.md'), 'You are Planck.\n')
  await me.ask('question 4')
  expect(api.asked.map(({ system }) => system)).toEqual([...Array(3).fill('You are a helpful personal assistant.'), 'You are Planck.'])
  expect(api.asked.at(-1)?.messages.map(({ content }) => content)).toEqual([
    'question 2',
    'answer 2',
    'question 3',
    'answer 3',
    'question 4',
  ])
  expect(brain.pid).toBeGreaterThan(0)
})

curled('PLANCKCLAW_DIR and HISTORY_MAX of config.env hold; compaction comes after the answer, with the words of the seed', async () => {
  using at = nest()
  const memory = join(at.dir, 'memory')
  mkdirSync(join(at.home, '.braidclaw'), { recursive: true })
  writeFileSync(
    join(at.home, '.braidclaw/config.env'),
    `export PLANCKCLAW_DIR="${memory}"\nexport HISTORY_MAX="4"\nexport HISTORY_KEEP='2' # few\n`,
  )
  const held = Promise.withResolvers<void>()
  using api = startApi(async ({ system, messages }) => {
    if (!system?.startsWith('You are a memory compaction assistant.')) return `re: ${messages.at(-1)?.content}`
    await held.promise
    return 'They counted to three.'
  })
  await using agent = stopping(await daemon(at, ['--brain', 'fifo', ...noTools]))
  await using brain = background(at, curlBrain.replaceAll('/tmp/planckclaw', agent.dir), { API_URL: api.url })
  await using me = await person(agent.dir)
  for (const word of ['one', 'two', 'three']) expect(await me.ask(word)).toBe(`re: ${word}`)
  held.resolve()
  await until(() => readFileSync(join(memory, 'summary.md'), 'utf8') !== '')
  expect(api.asked[3]).toMatchObject({ max_tokens: 2048, messages: [{ role: 'user' }] })
  expect(String(api.asked[3]?.messages[0]?.content)).toStartWith(
    'EXISTING SUMMARY:\n\n\nCONVERSATION TO SUMMARIZE:\n{"role":"user","content":"one"}',
  )
  expect(await me.ask('four')).toBe('re: four')
  expect(api.asked[4]?.system).toBe('You are a helpful personal assistant.\n---\nCONVERSATION SUMMARY:\nThey counted to three.')
  expect(api.asked[4]?.messages.map(({ content }) => content)).toEqual(['three', 're: three', 'four'])
  expect(readFileSync(join(memory, 'history.jsonl'), 'utf8').split('\n')[0]).toBe('{"role":"user","content":"three"}')
  expect(brain.pid).toBeGreaterThan(0)
})
