/** Follows a wiggum run from its events alone: which iteration it is in, which checks passed, and how often the same failure came in a row. */

import { canonical } from '../../../kit/json.ts'
import { sha256 } from '../../../kit/sha256.ts'
import type { CheckFinding, Progress, RunEvent } from '../../event.ts'

/** The events that change the progress. */
export const followed = (['run.start', 'model.done', 'model.fail', 'judge', 'check.done', 'retry', 'mode.set'] as const).map((type) => ({
  type,
}))

/** Returns the progress after an event; null in a structured run. */
export function progressAfter(progress: Progress | null, event: RunEvent): Progress | null {
  if (event.type === 'run.start') return begun(event)
  if (progress === null) return null
  switch (event.type) {
    case 'model.done':
      return at(progress, event.proposals.length === 0 ? 'checking' : 'working')
    case 'model.fail':
      return event.code === 'empty' ? at(progress, 'checking') : progress
    case 'judge':
      return at(progress, 'working')
    case 'check.done':
      return progress.stage === 'checking' ? checked(progress, event) : progress
    case 'retry':
      return { ...at(progress, 'working'), iteration: progress.iteration + 1, evidence: '' }
    case 'mode.set':
      return event.maxIterations ? { ...progress, limits: { ...progress.limits, maxIterations: event.maxIterations } } : progress
    default:
      return progress
  }
}

function at(progress: Progress, stage: Progress['stage']): Progress {
  return { ...progress, stage, passed: 0, tree: null }
}

function begun({ wiggum, continues }: Extract<RunEvent, { type: 'run.start' }>): Progress | null {
  const fresh = { iteration: 1, stage: 'working', evidence: '', same: { key: '', times: 0 } } as const
  return wiggum === undefined ? null : { ...fresh, ...continues?.wiggum, limits: wiggum, passed: 0, tree: null }
}

function checked(progress: Progress, { pass, evidence, notRun, tree: ranOn }: CheckFinding): Progress {
  const { passed, same } = progress
  const [{ checks }, tree] = [progress.limits, ranOn ?? null]
  const name = checks[passed]?.name ?? ''
  if (notRun) return { ...at(progress, 'unusable'), evidence: `${name}: ${evidence}` }
  if (pass && passed > 0 && tree !== progress.tree) return failed(progress, name, movedWords)
  if (pass) return { ...progress, passed: passed + 1, tree, stage: passed + 1 === checks.length ? 'passed' : 'checking' }
  const key = sha256(canonical([tree, name, withoutTimes(evidence)])).slice(0, 32)
  return { ...failed(progress, name, evidence), same: { key, times: key === same.key ? same.times + 1 : 1 } }
}

const movedWords = 'it passed on other files than the checks before it; end what changes the workspace in the background'

function failed(progress: Progress, name: string, evidence: string): Progress {
  return { ...at(progress, 'failed'), evidence: `The check ${JSON.stringify(name)} failed:\n${evidence}` }
}

/** Removes durations and times of day: they differ whenever a check runs. */
function withoutTimes(evidence: string): string {
  return evidence.replace(/\d+(?:[.,]\d+)*\s?(?:ns|µs|ms|s|sec|seconds?|m|min)\b|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?/g, '')
}
