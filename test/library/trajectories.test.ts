/** The library calls for training data: tasks, captured runs, and a file to which several processes append. On Bun, and built for Node. */

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stepsOf } from '../../src/host/records/trajectories/formats.ts'
import { appendToFile, captureTrajectory, loadTaskDataset } from '../../src/library/agent/trajectories.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'
import { eventful, live, yes } from '../../src/runtime/replay/recorded.fixture.ts'
import { recordedRun } from '../../src/runtime/replay/recorded-run.ts'
import { given, needs } from '../support/needs.ts'
import { readSeed } from '../support/training-formats.ts'

const root = join(import.meta.dir, '../..')
const dir = mkdtempSync(join(tmpdir(), 'trajectories-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const file = (name: string, text: string) => {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}
async function* stream(...events: AgentEvent[]): AsyncGenerator<AgentEvent> {
  yield* events
}

describe('loadTaskDataset', () => {
  test('reads a task a line, with an id or the digest of its prompt in place of one, and keeps the other members', () => {
    const path = file(
      'tasks.jsonl',
      '\uFEFF{"task_id":"sum","prompt":"Mend the sum","level":2}\n\n{"id":7,"prompt":"Build it"}\r\n{"prompt":"Say hello"}',
    )
    expect(loadTaskDataset(path)).toEqual([
      { task_id: 'sum', prompt: 'Mend the sum', level: 2 },
      { task_id: '7', prompt: 'Build it' },
      { task_id: new Bun.CryptoHasher('sha256').update('Say hello').digest('hex'), prompt: 'Say hello' },
    ])
  })

  test('names every bad line by its number', () => {
    const path = file(
      'bad.jsonl',
      '{"prompt":"a"}\nnot json\n[1]\n{"prompt":" "}\n{"task_id":"x","prompt":"b"}\n{"id":"x","prompt":"c"}\n{"id":{},"prompt":"d"}\n',
    )
    let message = ''
    try {
      loadTaskDataset(path)
    } catch (error) {
      message = String(error)
    }
    const numbers = message.split('\n').map((line) => /bad\.jsonl:(\d+): /.exec(line)?.[1])
    expect(numbers).toEqual(['2', '3', '4', '6', '7'])
    expect(message).toContain('task_id "x" is already that of line 5')
  })

  test('a file without a task, and no file, are errors', () => {
    expect(() => loadTaskDataset(file('empty.jsonl', '\n'))).toThrow('has no task; write one')
    expect(() => loadTaskDataset(join(dir, 'none.jsonl'))).toThrow('ENOENT')
  })
})

const init: AgentEvent = { type: 'init', runId: 'run_1', model: 'm' }
const wiggum: readonly AgentEvent[] = [
  init,
  { type: 'iteration', count: 1 },
  { type: 'thinking', content: 'Look' },
  { type: 'text', content: 'I l', isPartial: true },
  { type: 'text', content: 'I look', isPartial: false },
  { type: 'tool_use', toolCallId: 'a', toolName: 'shell', input: { command: 'npm test' } },
  { type: 'tool_use', toolCallId: 'b', toolName: 'file_read', input: { path: 'x' } },
  { type: 'tool_result', toolCallId: 'a', status: 'failed', output: '1 failed' },
  { type: 'tool_result', toolCallId: 'b', status: 'completed', output: 'text' },
  { type: 'text', content: 'Done', isPartial: false },
  { type: 'iteration', count: 2 },
  { type: 'text', content: 'Done again', isPartial: false },
]

describe('captureTrajectory', () => {
  const options = { taskId: 'sum', prompt: 'Mend the sum' }

  test('a run whose checks passed is a success: one step a call, one a reply without calls', async () => {
    const captured = await captureTrajectory(stream(...wiggum, { type: 'done', stopReason: 'end_turn', iterations: 2 }), options)
    expect(captured).toEqual({
      ...{ task_id: 'sum', prompt: 'Mend the sum', outcome: 'success', iterations: 2, reward: 1 },
      steps: [
        { state: 'Mend the sum', action: 'npm test', observation: '1 failed', thinking: 'Look\n\nI look' },
        { state: '', action: 'file_read {"path":"x"}', observation: 'text' },
        { state: '1 failed\n\ntext', action: 'Done', observation: '' },
        { state: '', action: 'Done again', observation: '' },
      ],
    })
    readSeed(JSON.stringify(captured))
  })

  test('a run at its limit is a failure, and so is one that stopped after a failed check', async () => {
    const limit: AgentEvent = { type: 'error', code: 'limit', message: 'the limit is reached', recoverable: false }
    for (const events of [[...wiggum, limit], [...wiggum], [...wiggum.slice(0, 10), limit]]) {
      const iterations = events.filter(({ type }) => type === 'iteration').length
      const captured = await captureTrajectory(stream(...events, { type: 'done', stopReason: 'error', iterations }), options)
      expect(captured).toMatchObject({ outcome: 'failure', reward: 0, iterations })
    }
  })

  test('without an executed check there is no reward, whatever the model says', async () => {
    const claims: AgentEvent[] = [init, { type: 'text', content: 'All tests pass', isPartial: false }]
    const plain = stream(...claims, { type: 'done', stopReason: 'end_turn', result: 'All tests pass' })
    await expect(captureTrajectory(plain, options)).rejects.toThrow('no check was executed')
    const failed: AgentEvent = { type: 'error', code: 'provider.auth', message: 'no key', recoverable: false }
    const early = stream(init, { type: 'iteration', count: 1 }, failed, { type: 'done', stopReason: 'error', iterations: 1 })
    await expect(captureTrajectory(early, options)).rejects.toThrow('no check was executed (it ended with provider.auth)')
    await expect(captureTrajectory(stream(...wiggum), options)).rejects.toThrow('the events end before "done"')
  })

  test('a check of the caller judges a run in structured mode, and only one that ended well passes', async () => {
    const events = (stopReason: 'end_turn' | 'error') =>
      stream(init, { type: 'text', content: 'Done', isPartial: false }, { type: 'done', stopReason })
    expect(await captureTrajectory(events('end_turn'), { check: () => true })).toMatchObject({
      task_id: 'run_1',
      prompt: '',
      reward: 1,
      iterations: 1,
    })
    expect(await captureTrajectory(events('end_turn'), { check: async () => false })).toMatchObject({ outcome: 'failure', reward: 0 })
    expect(await captureTrajectory(events('error'), { check: () => true })).toMatchObject({ reward: 0 })
    await expect(captureTrajectory(events('end_turn'), { check: () => Promise.reject(new Error('no npm')) })).rejects.toThrow('no npm')
  })

  test('the events of a run give the same steps as its journal', async () => {
    const events: AgentEvent[] = []
    const { entries } = await live(eventful, async (event, agent) => {
      events.push(event)
      await yes(event, agent)
    })
    const captured = await captureTrajectory(stream(...events), { prompt: 'go', check: () => true })
    const recorded = recordedRun(entries.map((entry) => ({ ...entry, at: 1 })))
    const done = (steps: typeof captured.steps) => steps.map(({ action, thinking }) => ({ action, thinking }))
    expect(done(captured.steps).length).toBeGreaterThan(4)
    expect(done(captured.steps)).toEqual(done(stepsOf(recorded?.messages ?? [])))
  })
})

describe('appendToFile', () => {
  test('creates a file for its owner alone and adds a line; a text of several lines is refused', async () => {
    const path = join(dir, 'own.jsonl')
    await appendToFile(path, '{"a":1}')
    await appendToFile(path, '{"b":"ä"}\n')
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"b":"ä"}\n')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    await expect(appendToFile(path, 'a\nb')).rejects.toThrow('several lines')
    await expect(appendToFile(join(dir, 'none', 'x.jsonl'), 'a')).rejects.toThrow('ENOENT')
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(3)
  })

  test('after a line that was cut off it begins a new one', async () => {
    const path = file('cut.jsonl', '{"a":1}\n{"b":')
    await appendToFile(path, '{"c":3}')
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"b":\n{"c":3}\n')
  })

  test.if(needs('node'))('two processes, one of them Node, append whole lines', async () => {
    const built = await Bun.build({
      entrypoints: [join(root, 'src/library/agent/trajectories.ts')],
      target: 'node',
      outdir: join(dir, 'built'),
    })
    expect(built.success).toBe(true)
    for (const output of built.outputs) expect(await output.text()).not.toMatch(/\bBun\.|\bbun:/)
    const path = join(dir, 'two.jsonl')
    const code = `const { appendToFile } = await import(${JSON.stringify(join(dir, 'built/trajectories.js'))})
process.stdout.write('ready')
await new Promise((resolve) => process.stdin.once('data', resolve))
const by = process.argv[2]
for (let at = 0; at < 60; at++) await appendToFile(${JSON.stringify(path)}, JSON.stringify({ by, at, filler: by.repeat(700_000) }))
process.exit(0)`
    const program = file('append.mjs', code)
    const writers = [Bun.which('node') ?? 'node', process.execPath].map((runtime, at) =>
      Bun.spawn([runtime, program, String(at)], { stdio: ['pipe', 'pipe', 'inherit'] }),
    )
    // Both have loaded everything before one of them writes.
    for (const { stdout } of writers) await stdout.getReader().read()
    for (const { stdin } of writers) {
      stdin.write('go')
      await stdin.flush()
    }
    expect(await Promise.all(writers.map(({ exited }) => exited))).toEqual([0, 0])
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    for (const by of ['0', '1'])
      expect(lines.filter((line) => line.by === by).map(({ at }) => at)).toEqual(Array.from({ length: 60 }, (_, at) => at))
    expect(lines.every(({ by, filler }) => filler === by.repeat(700_000))).toBe(true)
  })

  test.if(given(statSync('/dev/full', { throwIfNoEntry: false }) !== undefined, '/dev/full'))('a full disk is an error', async () => {
    await expect(appendToFile('/dev/full', 'a')).rejects.toThrow('appendToFile: ')
  })
})
