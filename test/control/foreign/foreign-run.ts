/** Starts a runner of another maker as a worker would: with its adapter, in an empty home, against the metered pass-through. */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ForeignRunner, RunnerEvent, RunnerTask } from '../../../src/control/runners/runner.ts'
import { given } from '../../support/needs.ts'
import { emptyTask } from '../llm/stub-plane.ts'

export const foreignPrograms = join(import.meta.dir, 'node_modules', '.bin')
export const longestMs = 120_000

/** CI has them all: there a missing one is a failure. */
export function hasForeign(name: string): boolean {
  const isThere = existsSync(join(foreignPrograms, name))
  return given(isThere || Bun.env.CI === 'true', `${name} in test/control/foreign (run scripts/setup-debian)`)
}

export type ForeignRun = {
  readonly code: number
  readonly events: readonly RunnerEvent[]
  readonly stdout: string
  readonly stderr: string
  readonly took: number
}

type Given = Pick<RunnerTask, 'apiUrl' | 'prompt' | 'skillIndex' | 'model'>

export async function runForeign(runner: ForeignRunner, given: Given): Promise<ForeignRun> {
  const home = mkdtempSync(join(tmpdir(), `braidclaw-${runner.name}-`))
  const workspace = join(home, 'workspace')
  mkdirSync(workspace)
  const task: RunnerTask = {
    ...{ task: { ...emptyTask, run_id: 'RUN-001', cancel_requested: false }, runId: 'RUN-001', agentId: 'sysadmin' },
    ...{ workspace, home, runToken: 'cpr_test', resumes: false, ...given },
  }
  for (const { path, content } of runner.files(task)) put(join(home, path), content)
  const began = performance.now()
  const child = Bun.spawn([join(foreignPrograms, runner.program), ...runner.argv(task)], {
    cwd: workspace,
    env: {
      ...{ PATH: `${foreignPrograms}:/usr/local/bin:/usr/bin:/bin`, HOME: home, TERM: 'dumb', LANG: 'C.UTF-8' },
      ...{ CONTROLPLANE_API_KEY: task.runToken, CONTROLPLANE_API_URL: task.apiUrl },
      ...runner.env(task),
    },
    stdin: new TextEncoder().encode(runner.stdin?.(task) ?? ''),
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: longestMs,
    killSignal: 'SIGKILL',
  })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  rmSync(home, { recursive: true, force: true })
  return { code, stdout, stderr, took: performance.now() - began, events: stdout.split('\n').flatMap((line) => runner.parse(line)) }
}

function put(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content, { mode: 0o600 })
}
