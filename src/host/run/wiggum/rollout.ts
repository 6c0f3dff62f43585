/**
 * Runs each task of a data set several times, one run after another, each in a copy of the workspace that is dropped. It goes on after a kill:
 * what has ended is not run again.
 */

import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { unlessMissing } from '../../../kit/errors.ts'
import { replaceFile } from '../../../kit/files.ts'
import { digest } from '../../../kit/sha256.ts'
import { quote } from '../../../kit/text.ts'
import type { Conversation } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { beginWiggum, type WiggumStart } from './begin-wiggum.ts'
import { listRecords, own, removeCopy, removeRun, type WiggumRecord } from './run-copy.ts'
import { workOn } from './wiggum-run.ts'

/** `record`: the run's record, which may still be there after a kill; `run`: its last journalled run. */
const rollouts = z.array(z.strictObject({ record: z.string(), task: z.string(), run: z.string(), code: z.string() }))
export type EndedRollout = z.infer<typeof rollouts>[number]

export type RolloutWork = Omit<WiggumStart, 'prompt' | 'channel'> & {
  readonly tasks: readonly { readonly task_id: string; readonly prompt: string }[]
  /** How often each task is run. */
  readonly times: number
  readonly ended: (rollout: EndedRollout, number: number) => void
}

/** A run that ended so ends the whole work, which goes on when it is begun again; any other end is an outcome. */
const stops = ['cancelled', 'budget', 'provider', 'estop', 'integrity', 'error'] as const
type Stop = (typeof stops)[number]
const isStop = (code: string | undefined): code is Stop => stops.some((each) => each === code)

type Over = { readonly run: string; readonly code: string; readonly message: string }
type Rollouts = { readonly ended: readonly EndedRollout[]; readonly stopped?: Over & { readonly code: Stop }; readonly forget: () => void }

/**
 * Works until all rollouts have ended, or one was stopped. `forget` removes what is known of them, so that the next start begins anew.
 * @throws FailureError `usage` when the checks of a task pass already, and what `beginWiggum` and `workOn` throw
 */
export async function rollOut(work: RolloutWork): Promise<Rollouts> {
  const { setup, tasks, times, choices } = work
  const { checks, maxIterations = null } = choices
  const key = digest([setup.config.workspaceDir, setup.config.defaultModel, tasks, times, checks, maxIterations]).slice(0, 20)
  const { ended, keep, forget } = openProgress(join(setup.paths.home, 'rollouts'), key)

  async function drop(record: WiggumRecord): Promise<void> {
    await removeCopy(work.host, record)
    await removeRun(setup, record)
  }

  /** Returns the run of this task that a kill interrupted, if there is one; it removes what nobody needs. */
  async function interrupted(prompt: string): Promise<WiggumRecord | undefined> {
    const found = listRecords(setup).filter(({ rollout }) => rollout === key)
    if (found.some(({ id }) => !own(setup, id)))
      throw new FailureError('error', 'another process works on these rollouts; wait for it, or end it')
    const isOver = ({ id, state, ended: end }: WiggumRecord) =>
      ended.some(({ record }) => record === id) || (state !== 'running' && isStop(end?.code))
    for (const record of found.filter(isOver)) await drop(record)
    return found.find((record) => record.prompt === prompt && !isOver(record))
  }

  /** @returns undefined when an interrupted run cannot go on, and was dropped */
  async function outcome(record: WiggumRecord, isNew: boolean): Promise<Over | undefined> {
    const seen: { conversation?: Conversation } = {}
    const opened = (conversation: Conversation) => void Object.assign(seen, { conversation })
    try {
      const { code, message } = record.ended ?? (await workOn({ ...work, record, show: () => {}, opened })).ending
      return { run: seen.conversation?.runId() ?? record.runs.at(-1) ?? '', code, message }
    } catch (error) {
      await drop(record)
      if (isNew) throw error
    }
  }

  for (const { task_id: task, prompt } of tasks) {
    while (ended.filter((each) => each.task === task).length < times) {
      const left = await interrupted(prompt)
      const record = left ?? (await beginWiggum({ ...work, prompt, choices: { ...choices, rollout: key }, channel: 'rollout' }))
      if (!record) throw new FailureError('usage', `the checks pass before anything is done about ${quote(prompt)}; --force runs it`)
      const over = await outcome(record, left === undefined)
      if (over === undefined) continue
      const { run, code } = over
      if (isStop(code)) {
        // Whoever ends the machine or the service wants the run to go on afterwards.
        if (code !== 'cancelled' || work.signal.reason === 'Ctrl-C') await drop(record)
        return { ended, stopped: { ...over, code }, forget }
      }
      // It is on record before its copy is removed: a kill in between repeats nothing.
      keep({ record: record.id, task, run, code })
      await drop(record)
      work.ended({ record: record.id, task, run, code }, ended.length)
    }
  }
  return { ended, forget }
}

/** Opens the file that says which rollouts have ended. @throws the errors of the file system, and ZodError for a file that is not ours */
function openProgress(folder: string, key: string) {
  const path = join(folder, `${key}.json`)
  const text = unlessMissing(() => readFileSync(path, 'utf8'))
  const ended = text === undefined ? [] : rollouts.parse(JSON.parse(text))
  function keep(rollout: EndedRollout): void {
    ended.push(rollout)
    replaceFile(path, JSON.stringify(ended))
  }
  return { ended, keep, forget: () => rmSync(path, { force: true }) }
}
