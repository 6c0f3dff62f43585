/** Implements `rollout`: it runs the tasks of a data set several times in Wiggum mode, and writes what came of them as training data. */

import { resolve } from 'node:path'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { commandCheck, configuredChecks } from '../../../host/checks/find-checks.ts'
import { FailureError } from '../../../host/failure.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { exportTrajectories } from '../../../host/records/trajectories/export-trajectories.ts'
import { type EndedRollout, rollOut } from '../../../host/run/wiggum/rollout.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atAsyncEnd, errorText } from '../../../kit/errors.ts'
import { loadTaskDataset } from '../../../library/agent/trajectories.ts'
import { command, type Flags } from '../../args/command.ts'
import { modelFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { openFiles, outputFlags } from '../records/export.ts'

const flags = {
  task: { type: 'text', about: 'The file of tasks, one a line: {"task_id": "sum", "prompt": "…"}' },
  times: { type: 'whole', short: 'k', min: 1, max: 1000, default: 8, about: 'How often each task is run' },
  check: { type: 'text', many: true, about: 'A command that must exit with 0 (default: the checks of the project); may be repeated' },
  maxIterations: { type: 'whole', min: 1, max: 1000, about: 'Iterations of one run at most (default: 20)' },
  force: { type: 'boolean', about: 'Run a task although its checks pass already' },
  ...{ ...workspaceFlag, ...modelFlag, ...outputFlags },
} as const satisfies Flags

export const rollout = command({
  flags,
  examples: [
    [
      "--task tasks.jsonl -k 8 --check 'npm test' --out rollouts.jsonl",
      'eight runs of each task, one after another; your folder stays as it is',
    ],
    ["--task tasks.jsonl -k 2 --check 'npm test' --format trl-pref", 'on stdout, a success with a failure of each task'],
  ],
  details: () =>
    'Each run works on a copy of the workspace that is dropped. Ctrl-C, a kill or a spent budget loses at most the run under way: the same command goes on, and repeats nothing that has ended.',
  exits: [5, 6, 8, 9, 10, 130],
  async run(context, given) {
    if (given.task === undefined) throw usageError('--task names the file of tasks')
    const tasks = tasksIn(resolve(context.cwd, given.task))
    const settings = { workspace: given.workspace, model: given.model }
    const setup = await withFoundModels(loadSetup(context, settings))
    const checks = given.check?.map(commandCheck) ?? configuredChecks(setup)
    if (checks.length === 0) throw usageError("a rollout needs a check, which decides its reward: --check 'npm test'")
    const { stdout, stderr } = context.process
    const cancelled = new AbortController()
    const { stop } = onInterrupt((by) => cancelled.abort(by))
    const host = await openHost(setup)
    const ended = ({ task, run, code }: EndedRollout, number: number) =>
      stderr.write(
        `rollout ${number} of ${tasks.length * given.times}: ${task.slice(0, 40)}, ${run}: ${code === 'answered' ? 'passed' : code}\n`,
      )
    await using _end = atAsyncEnd(async () => {
      stop()
      await host.close()
    })
    const choices = { checks, maxIterations: given.maxIterations, force: given.force }
    const work = { host, setup, tasks, times: given.times, choices, settings, say: () => {}, signal: cancelled.signal, ended }
    const done = await rollOut(work).catch((error: unknown) => {
      throw cancelled.signal.aborted ? new CliExit(exitCodes.cancelled, 'cancelled; the same command goes on') : error
    })
    if (done.stopped)
      throw new CliExit(exitCodes[done.stopped.code], `${done.stopped.code}: ${done.stopped.message}; the same command goes on`)
    const files = given.out === undefined ? undefined : openFiles(resolve(context.cwd, given.out), false)
    const write = (line: string) => {
      if (files) files.write(line, 'train')
      else stdout.write(`${line}\n`)
      return true
    }
    const query = { format: given.format ?? 'seed', runs: done.ended.map(({ run }) => run) }
    const summary = await withMemory(setup, (memory) => exportTrajectories({ memory, setup }, query, write))
    files?.keep()
    files?.discard()
    done.forget()
    const { records, passed, failed } = summary
    stderr.write(given.json ? `${JSON.stringify(summary)}\n` : `${records} records (${query.format}): ${passed} passed, ${failed} failed\n`)
  },
})

/** @throws FailureError `usage` for a file that cannot be read, or has bad lines */
function tasksIn(path: string): ReturnType<typeof loadTaskDataset> {
  try {
    return loadTaskDataset(path)
  } catch (error) {
    throw new FailureError('usage', errorText(error).split('\n'))
  }
}
