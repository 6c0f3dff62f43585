/** Tests the input of each runner, the meaning of its lines, and that a task's text never becomes an argument. */

import { describe, expect, test } from 'bun:test'
import type { Task } from '../contract/task-shapes.ts'
import { chooseRunner, type RunnerChoice } from '../worker/open-own-worker.ts'
import { aiderRunner, claudeRunner, codexRunner, commandRunner, piRunner, splitFlags } from './foreign-runners.ts'
import type { ForeignRunner, RunnerTask } from './runner.ts'

const mcpServer = { command: '/usr/bin/skills', args: ['serve'] }
const support = { piExtension: 'export default () => {}', mcpServer }
const runners: readonly ForeignRunner[] = [
  piRunner({ support }),
  claudeRunner({ support }),
  codexRunner({ support }),
  aiderRunner({}),
  commandRunner(['/opt/run', '--fast']),
]

const hostile = [
  '--dangerous-flag',
  '-rf /',
  '$(touch /tmp/x)',
  'a\nb; rm -rf /',
  '\u001b[2J\u0007',
  "'; DROP TABLE tasks; --",
  '@/etc/passwd',
]

function taskOf(text: string): RunnerTask {
  const task = { task_id: 'TASK-001', title: text, description: text, context: { text }, labels: [] } as unknown as Task
  return {
    ...{ task, runId: 'RUN-001', agentId: 'sysadmin', prompt: `You are. Task: ${text}`, skillIndex: `index ${text}` },
    ...{ workspace: '/w', home: '/h', apiUrl: 'http://127.0.0.1:3100', runToken: 'cpr_secret', model: 'm1', resumes: false },
  }
}

describe.each(runners.map((runner) => [runner.name, runner] as const))('%s', (_name, runner) => {
  test.each(hostile)('has the same arguments for every task: %j', (text) => {
    expect(runner.argv(taskOf(text))).toEqual(runner.argv(taskOf('plain')))
    expect(runner.env(taskOf(text))).toEqual(runner.env(taskOf('plain')))
  })

  test('gets the text of the task by its standard input or by a file', () => {
    const task = taskOf('hostile "quotes"')
    const given = [runner.stdin?.(task) ?? '', ...runner.files(task).map(({ content }) => content)]
    expect(given.some((text) => text.includes('hostile'))).toBe(true)
  })

  test('has the key of the run in no argument and in no file', () => {
    const task = taskOf('plain')
    const texts = [...runner.argv(task), runner.stdin?.(task) ?? '', ...runner.files(task).map(({ content }) => content)]
    expect(texts.filter((text) => text.includes('cpr_secret'))).toEqual([])
  })

  test.each([
    '',
    'x',
    '{',
    '{}',
    '[]',
    'null',
    '{"type":3}',
    '{"type":"result","usage":{"input_tokens":-5}}',
    '{"message":7,"type":"message_end"}',
  ])('does not stumble over the line %j', (line) =>
    expect(runner.parse(line).filter((event) => event.type === 'usage' && event.tokens < 0)).toEqual([]),
  )

  test('asks for models at the metered address of the control plane', () => {
    if (runner.name === 'command') return expect(runner.env(taskOf(''))).toEqual({})
    const texts = [JSON.stringify(runner.env(taskOf(''))), ...runner.files(taskOf('')).map(({ content }) => content)]
    expect(texts.some((text) => text.includes('http://127.0.0.1:3100/api/controlplane/llm'))).toBe(true)
  })
})

test('pi: its lines', () => {
  const { parse } = piRunner({})
  const message = {
    role: 'assistant',
    content: [{ type: 'text', text: 'done' }],
    usage: { input: 10, output: 5, cacheRead: 3, cacheWrite: 2, totalTokens: 20 },
    stopReason: 'stop',
  }
  expect(parse(JSON.stringify({ type: 'message_end', message }))).toEqual([
    { type: 'text', text: 'done' },
    { type: 'usage', tokens: 20 },
    { type: 'result', ok: true, output: 'done' },
  ])
  const failed = { ...message, content: [], stopReason: 'error', errorMessage: '402 budget' }
  expect(parse(JSON.stringify({ type: 'message_end', message: failed })).at(-1)).toEqual({
    type: 'result',
    ok: false,
    output: '402 budget',
  })
  expect(parse(JSON.stringify({ type: 'message_end', message: { ...message, role: 'user' } }))).toEqual([])
})

test('claude: its lines', () => {
  const { parse } = claudeRunner({})
  const content = [
    { type: 'text', text: 'let me look' },
    { type: 'tool_use', name: 'Bash', input: {} },
  ]
  expect(parse(JSON.stringify({ type: 'assistant', message: { content } }))).toEqual([
    { type: 'text', text: 'let me look' },
    { type: 'tool', name: 'Bash' },
  ])
  const usage = { input_tokens: 7, output_tokens: 3, cache_read_input_tokens: 100 }
  expect(parse(JSON.stringify({ type: 'result', is_error: false, result: 'all well', usage }))).toEqual([
    { type: 'usage', tokens: 110 },
    { type: 'result', ok: true, output: 'all well' },
  ])
})

test('codex: its lines', () => {
  const { parse } = codexRunner({})
  expect(parse('{"type":"item.completed","item":{"type":"agent_message","text":"hi"}}').at(-1)).toEqual({
    type: 'result',
    ok: true,
    output: 'hi',
  })
  expect(parse('{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":2}}')).toEqual([
    { type: 'usage', tokens: 11 },
  ])
  expect(parse('{"type":"turn.failed","error":{"message":"no"}}')).toEqual([{ type: 'result', ok: false, output: 'no' }])
})

test('aider: tokens as it prints them, and flags as a shell would split them', () => {
  const { parse, argv } = aiderRunner({ program: '/opt/aider', flags: '--model-settings "my file.yml" --no-gitignore' })
  expect(parse('Tokens: 1.2k sent, 310 received.')).toEqual([{ type: 'usage', tokens: 1_510 }])
  expect(parse('Tokens: 2.5M sent, 1.1k cache hit, 1,024 received. Cost: $0.02')).toEqual([{ type: 'usage', tokens: 2_501_024 }])
  expect(argv(taskOf('x')).slice(0, 3)).toEqual(['--model-settings', 'my file.yml', '--no-gitignore'])
  expect(splitFlags(` a 'b c' d"e f"g $(x) `)).toEqual(['a', 'b c', 'de fg', '$(x)'])
})

test('command: a line that is not a JSON object is what the program says', () => {
  const { parse } = commandRunner(['df'])
  expect(['', '  ', '42', 'Filesystem  Use%', '{"type":"text","text":"a"}', '{"other":1}', '{'].flatMap(parse)).toEqual([
    ...['42', 'Filesystem  Use%', 'a', '{'].map((text) => ({ type: 'text' as const, text })),
  ])
})

describe('the choice of a runner', () => {
  const choice = (fields: Partial<RunnerChoice>): RunnerChoice => ({ env: {}, support: {}, find: () => undefined, ...fields })
  const has = (...names: string[]) => ({ find: (name: string) => (names.includes(name) ? `/bin/${name}` : undefined) })

  test('a program that is not there is named, with how to install it', () => {
    expect(chooseRunner(choice({ named: 'codex' }))).toMatchObject({
      ok: false,
      message: expect.stringContaining('npm install -g @openai/codex'),
    })
    expect(chooseRunner(choice({ named: 'gpt' }))).toMatchObject({ ok: false, message: expect.stringContaining('own, pi, aider') })
    expect(chooseRunner(choice({ named: 'command' }))).toMatchObject({
      ok: false,
      message: expect.stringContaining('--runner command -- PROGRAM'),
    })
  })

  test('nothing named: pi when its program is found, else our own, said in one line', () => {
    expect(chooseRunner(choice(has('pi')))).toMatchObject({
      name: 'pi',
      path: '/bin/pi',
      note: expect.stringContaining('CONTROLPLANE_RUNNER'),
    })
    expect(chooseRunner(choice({}))).toMatchObject({ name: 'own', note: expect.stringContaining('CONTROLPLANE_RUNNER') })
    expect(chooseRunner(choice({ named: 'own' }))).toEqual({ ok: true, name: 'own' })
  })

  test('aider is the program that CONTROLPLANE_AIDER_BIN names', () => {
    const chosen = chooseRunner(choice({ named: 'aider', env: { CONTROLPLANE_AIDER_BIN: 'my-aider' }, ...has('my-aider') }))
    expect(chosen).toMatchObject({ ok: true, path: '/bin/my-aider' })
  })
})
