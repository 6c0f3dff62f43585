/** The listing "Training Data Generation" of specification 003; a scripted model takes the place of the local one. docs/trajectories.md has the differences. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { appendToFile, captureTrajectory, loadTaskDataset } from '../../src/library/agent/trajectories.ts'
import { needs } from '../support/needs.ts'
import { readSeed } from '../support/training-formats.ts'

/** Claims to be done, and does it only after the check has failed. */
const modelCall: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'tool') yield { type: 'text', content: 'Now it is.' }
  else if (last?.role === 'user' && /failed/.test(JSON.stringify(last.content)))
    yield { type: 'tool_use', name: 'shell', input: { command: 'cp wanted.txt found.txt' } }
  else yield { type: 'text', content: 'All checks pass.' }
}

test.if(needs('bwrap'))('training data generation', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-listing-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  for (const name of ['wanted.txt', 'found.txt']) writeFileSync(join(cwd, name), name)
  const [dataset, out] = [join(dir, 'training-tasks.jsonl'), join(dir, 'trajectories.jsonl')]
  writeFileSync(
    dataset,
    '{"task_id":"copy","prompt":"Make found.txt the same as wanted.txt"}\n{"task_id":"none","prompt":"Do what nobody can"}\n',
  )

  const tasks = loadTaskDataset(dataset)
  for (const task of tasks) {
    const command = task.task_id === 'copy' ? 'cmp wanted.txt found.txt' : 'test -e nowhere.txt'
    const agent = createAgent({
      cwd,
      home: join(dir, 'home'),
      env: { HOME: dir, PATH: process.env.PATH },
      modelCall,
      checks: [{ command }],
    })
    await agent.setMode({ newMode: 'wiggum', maxIterations: 2 })
    const trajectory = await captureTrajectory(agent.run(task.prompt), { taskId: task.task_id, prompt: task.prompt })
    await appendToFile(out, JSON.stringify(trajectory))
    await agent.close()
  }

  const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
  for (const line of lines) readSeed(line)
  const [copy, none] = lines.map((line) => JSON.parse(line))
  expect(copy).toMatchObject({
    task_id: 'copy',
    prompt: 'Make found.txt the same as wanted.txt',
    outcome: 'success',
    iterations: 2,
    reward: 1,
  })
  expect(copy.steps.map(({ action }: { action: string }) => action)).toEqual(['All checks pass.', 'cp wanted.txt found.txt', 'Now it is.'])
  expect(none).toMatchObject({ task_id: 'none', outcome: 'failure', iterations: 2, reward: 0 })
  expect(readFileSync(join(cwd, 'found.txt'), 'utf8')).toBe('wanted.txt')
  rmSync(dir, { recursive: true, force: true })
})
