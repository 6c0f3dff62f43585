/** `rollout` through the real executable: several runs of each task, on copies that are dropped, and after a kill what had ended is not repeated. */

import { afterAll, test as always, expect } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { readSeed } from '../support/training-formats.ts'
import { until } from '../support/until.ts'
import { check, mend, project, said, tree } from './wiggum.fixture.ts'

const test = always.if(needs('bwrap'))
const made = project()
afterAll(() => made[Symbol.dispose]())

const [dataset, out] = [join(made.dir, 'tasks.jsonl'), join(made.dir, 'rollouts.jsonl')]
writeFileSync(dataset, '{"task_id":"one","prompt":"Make the tests pass"}\n{"task_id":"two","prompt":"Make them pass, please"}\n')
const words = ['rollout', '--task', dataset, '-k', '2', '--check', check, '--max-iterations', '1', '--out', out]
const kept = (name: string) => {
  try {
    return readdirSync(join(made.home, '.braidclaw', name))
  } catch {
    return []
  }
}

/** The ids of all runs of models. */
async function runs(): Promise<readonly string[]> {
  const { stdout } = await made.run(['run', 'list', '--limit', '100', '--json'])
  const listed: { runId: string; channel: string }[] = JSON.parse(stdout || '[]')
  return listed.filter(({ channel }) => channel === 'rollout').map(({ runId }) => runId)
}

test('each task is run as often as wanted; the folder stays as it is, and nothing of the copies is left', async () => {
  const before = tree(made.workspace)
  const replies = [{ tool_calls: [mend] }, said()]
  const { code, stdout, stderr } = await made.run(words, { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture(replies) }, timeoutMs: 100_000 })
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('4 records (seed): ') })
  const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
  const told = lines.map((line) => ({ ...readSeed(line), prompt: JSON.parse(line).prompt }))
  expect(told.map(({ prompt }) => prompt)).toEqual([...Array(2).fill('Make the tests pass'), ...Array(2).fill('Make them pass, please')])
  expect(told.map(({ reward }) => reward)).toEqual([1, 1, 1, 1])
  expect(tree(made.workspace)).toEqual(before)
  expect([kept('wiggum'), kept('rollouts')]).toEqual([[], []])
})

test('after a kill the same command goes on with the run under way, and repeats nothing that had ended', async () => {
  const begun = await runs()
  const started = made.start(words, { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture([{ ...said(), delay_ms: 2_000 }]) }, timeoutMs: 100_000 })
  const ended = [await started.says(/rollout 1 of 4: one, (run_\w+): limit/), await started.says(/rollout 2 of 4: one, (run_\w+): limit/)]
  const underWay = await until(async () => (await runs()).find((id) => ![...begun, ...ended].includes(id)))
  process.kill(started.pid, 'SIGKILL')
  await started.result
  const { code, stderr } = await made.run(words, { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture([said()]) }, timeoutMs: 100_000 })
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('rollout 4 of 4: two') })
  expect(stderr).not.toMatch(/rollout [12] of 4/)
  expect(readFileSync(out, 'utf8').trimEnd().split('\n')).toHaveLength(4)
  // The run under way has one more, which goes on with it.
  const more = (await runs()).filter((id) => !begun.includes(id))
  expect(more).toEqual(expect.arrayContaining([...ended, underWay]))
  expect(more).toHaveLength(5)
  expect([kept('wiggum'), kept('rollouts')]).toEqual([[], []])
})

test('Ctrl-C ends it with 130 and drops the run under way, which the next start makes again', async () => {
  const before = await runs()
  const slow = made.fixture([{ ...said(), delay_ms: 2_000 }])
  const started = made.start(words, { env: { BRAIDCLAW_MOCK_FIXTURE: slow }, timeoutMs: 100_000 })
  const first = await started.says(/rollout 1 of 4: one, (run_\w+): limit/)
  await until(async () => (await runs()).some((id) => ![...before, first].includes(id)))
  process.kill(started.pid, 'SIGINT')
  expect(await started.result).toMatchObject({ code: 130, stderr: expect.stringContaining('the same command goes on') })
  expect(kept('wiggum')).toEqual([])
  const { code, stderr } = await made.run(words, { env: { BRAIDCLAW_MOCK_FIXTURE: made.fixture([said()]) }, timeoutMs: 100_000 })
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('rollout 2 of 4') })
  expect(stderr).not.toContain('rollout 1 of 4')
})

test('without a check, a file or a bad line it says what is missing', async () => {
  const bad = join(made.dir, 'bad.jsonl')
  writeFileSync(bad, '{"prompt":"x"}\nno\n')
  for (const [args, says] of [
    [['--task', dataset], 'a rollout needs a check'],
    [['--check', check], '--task names the file of tasks'],
    [['--task', bad, '--check', check], `${bad}:2: `],
    [['--task', join(made.dir, 'none'), '--check', check], 'ENOENT'],
    [['--task', dataset, '--check', 'true'], 'the checks pass before anything is done'],
  ] as const) {
    const { code, stdout, stderr } = await made.run(['rollout', ...args], { timeoutMs: 60_000 })
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(says)])
  }
})
