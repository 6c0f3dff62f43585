/** Tests the four shared cases of seed 002 for each tool loop; SHELLCLAW_TOOL_BACKEND chooses one, the fast tier tries one by itself. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { executable, nest } from '../../support/cli.ts'
import { needs } from '../../support/needs.ts'
import { sleeperOf, uniqueSeconds } from '../../support/sleeper.ts'
import { isDeep } from '../../support/tier.ts'
import { until } from '../../support/until.ts'
import { call, calls, type Loop, type Play, play, say } from './stage.ts'

const programs = { native: ['bwrap'], bash: ['bwrap', 'jq', 'curl'], llm: ['bwrap', 'python3'], elixir: ['bwrap', 'elixir'] } as const
const loops: readonly Loop[] = [
  { backend: 'native', wire: 'openai-compatible' },
  { backend: 'bash', wire: 'anthropic' },
  { backend: 'llm', wire: 'openai-compatible' },
  { backend: 'elixir', wire: 'anthropic' },
]
const chosen = process.env.SHELLCLAW_TOOL_BACKEND ?? (isDeep ? undefined : 'elixir')
const tried = loops.filter(({ backend }) => chosen === undefined || backend === chosen)

const elixir = join(import.meta.dir, '../../../bridges/tool-loop/elixir')
const built = mkdtempSync(join(tmpdir(), 'braidclaw-escript-'))
const triesElixir = tried.some(({ backend }) => backend === 'elixir') && needs('bwrap', 'elixir')
const env: { readonly [name: string]: string } = triesElixir ? { TOOL_LOOP_ESCRIPT: join(built, 'shellclaw-tool-loop') } : {}

/** Without Elixir, `needs` reports it. */
const inElixir = triesElixir ? test : () => {}

/** As a person builds it; the wrapper does the same where no escript is named. */
beforeAll(() => {
  if (!triesElixir) return
  const env = { PATH: '/usr/bin:/bin', HOME: built, LC_ALL: 'C.UTF-8', TOOL_LOOP_BUILD: built }
  const { exitCode, stderr } = Bun.spawnSync(['mix', 'escript.build'], { cwd: elixir, env })
  if (exitCode !== 0) throw new Error(stderr.toString())
}, 60_000)
afterAll(() => rmSync(built, { recursive: true, force: true }))

/** Writes the stub skills, whose output is always the same. */
async function skills({ dir }: { readonly dir: string }): Promise<void> {
  for (const [name, parameter, body] of [
    ['weather', 'city', `printf 'sunny in %s' "$(printf %s "$1" | sed 's/.*:"\\(.*\\)".*/\\1/')"`],
    ['forecast', 'weather', 'echo tomorrow the same'],
    ['secret', 'any', 'touch secret-ran'],
  ] as const) {
    const parameters = { type: 'object', properties: { [parameter]: { type: 'string' } } }
    const description = JSON.stringify({ name, description: `The ${name}.`, parameters })
    const path = join(dir, 'ops/skills', `${name}.sh`)
    writeFileSync(path, `#!/bin/sh\nif [ "$1" = --describe ]; then echo '${description}'; exit; fi\n${body}\n`)
    chmodSync(path, 0o755)
  }
}

test('there is a loop to try', () => expect(tried).not.toEqual([]))

describe.each(tried)('$backend', (loop) => {
  const given = test.if(needs(...programs[loop.backend]))
  const shared = (replies: Play['replies'], message: string) =>
    play(loop, { replies, message, tools: [{ name: 'weather' }, { name: 'forecast' }], before: skills, env })

  given('1: a single tool call: the skill executes, its result is fed back, and the final text is printed', async () => {
    const { code, stdout, transcript } = await shared(
      [calls(call('weather', { city: 'Bern' })), say('It is sunny.')],
      "What's the weather?",
    )
    expect([code, stdout]).toEqual([0, 'It is sunny.\n'])
    expect(transcript).toEqual([{ name: 'weather', args: { city: 'Bern' }, result: 'sunny in Bern' }])
  })

  given('2: no tool call is needed: the text is printed, and no tool is dispatched', async () => {
    const { code, stdout, transcript, receipts, fake } = await shared([say('Hello, you.')], 'Hello')
    expect([code, stdout, transcript, receipts]).toEqual([0, 'Hello, you.\n', [], []])
    expect(fake.asked[0]?.text).toContain('"weather"')
  })

  given('3: a tool that is not in the list: "Tool not permitted" is fed back to the model', async () => {
    const { code, stdout, transcript, home } = await shared([calls(call('secret', {})), say('I may not.')], 'Tell me the secret')
    expect([code, stdout]).toEqual([0, 'I may not.\n'])
    expect(transcript[0]?.result).toStartWith('Tool not permitted')
    expect(existsSync(join(home.workspace, 'secret-ran'))).toBe(false)
  })

  given('4: several rounds: each call follows the result of the one before, and a last text sums up', async () => {
    const replies = [
      calls(call('weather', { city: 'Bern' })),
      calls(call('forecast', { weather: 'sunny' })),
      say('Sunny, and tomorrow too.'),
    ]
    const { code, stdout, transcript, requests } = await shared(replies, 'And tomorrow?')
    expect([code, stdout, requests]).toEqual([0, 'Sunny, and tomorrow too.\n', 3])
    expect(transcript.map(({ name, result }) => `${name}: ${result}`)).toEqual(['weather: sunny in Bern', 'forecast: tomorrow the same\n'])
  })
})

inElixir('elixir: SIGTERM while a tool runs ends the tool, which leaves its receipt; the wrapper builds the escript', async () => {
  using at = nest()
  const seconds = uniqueSeconds()
  const folder = join(at.dir, 'ops/skills')
  mkdirSync(folder, { recursive: true })
  const description = '{"name":"slow","description":"Takes long.","parameters":{"type":"object"}}'
  writeFileSync(
    join(folder, 'slow.sh'),
    `#!/bin/sh\nif [ "$1" = --describe ]; then echo '${description}'; exit; fi\nexec sleep ${seconds}\n`,
  )
  chmodSync(join(folder, 'slow.sh'), 0o755)
  writeFileSync(join(at.dir, 'ops/tools.json'), '[{"name":"slow"}]')
  const content = [{ type: 'tool_use', id: 'toolu_1', name: 'slow', input: {} }]
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ content, stop_reason: 'tool_use' }) })
  const child = Bun.spawn(['bash', join(elixir, 'tool_loop.sh'), 'go', '', join(at.dir, 'ops/tools.json')], {
    env: {
      ...at.env,
      PATH: '/usr/bin:/bin',
      BRAIDCLAW: executable,
      BRAIDCLAW_WORKSPACE: at.workspace,
      BRAIDCLAW_SECURITY_APPROVE_ALL_MEDIUM: 'true',
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.port}/v1/`,
      TOOL_LOOP_MODEL: 'm',
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  await until(() => sleeperOf(seconds))
  child.kill('SIGTERM')
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  await server.stop(true)
  expect([code, stdout, stderr.endsWith('tool-loop elixir: cancelled\n'), sleeperOf(seconds)]).toEqual([1, '', true, undefined])
  const [receipt] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
  expect(receipt).toMatchObject({ tool: 'slow', status: 'failed', error: expect.stringContaining('cancelled') })
  expect(readdirSync(join(at.home, '.braidclaw/run')).filter((name) => name.startsWith('tool-loop'))).toEqual([
    expect.stringMatching(/^tool-loop-elixir-\d+-\d+$/),
  ])
})

inElixir('elixir: the escript alone, as the seed calls it: message on stdin, text on stdout, iterations in the log file', async () => {
  using at = nest()
  const asked: string[] = []
  const text = 'Grüße 😀'
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      asked.push(await request.text())
      const call = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Bern' } }
      return Response.json({ content: asked.length === 1 ? [call] : [{ type: 'text', text }], stop_reason: 'end_turn' })
    },
  })
  mkdirSync(join(at.dir, 'ops/skills'), { recursive: true })
  await skills(at)
  const list = join(at.dir, 'tools.json')
  writeFileSync(list, '[{"name":"weather"}]')
  const script = `echo "$msg" | "$escript" --system "$prompt" --tools "${list}" --skills-dir "${at.dir}/ops/skills" --log-file "${at.dir}/log.jsonl"`
  const variables = {
    msg: 'Wie heißt du?',
    prompt: 'Sei höflich.',
    escript: join(built, 'shellclaw-tool-loop'),
    BRAIDCLAW: executable,
    TOOL_LOOP_MODEL: 'm',
  }
  const settings = { BRAIDCLAW_WORKSPACE: at.workspace, BRAIDCLAW_SECURITY_APPROVE_ALL_MEDIUM: 'true', LC_ALL: 'C.UTF-8' }
  const address = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.port}` }
  const env = { ...at.env, PATH: '/usr/bin:/bin', ...variables, ...settings, ...address }
  const child = Bun.spawn(['bash', '-c', script], { env, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  await server.stop(true)
  expect([code, stdout, stderr]).toEqual([0, `${text}\n`, ''])
  const [first, second] = asked.map((body) => JSON.parse(body))
  expect([first.messages[0].content, first.system, first.model]).toEqual(['Wie heißt du?\n', 'Sei höflich.', 'm'])
  expect(second.messages[2].content[0]).toMatchObject({ tool_use_id: 'toolu_1', content: 'sunny in Bern' })
  expect(
    (await Bun.file(join(at.dir, 'log.jsonl')).text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).message),
  ).toEqual(['1', '2'])
})
