/** Replays a past run with everything its journal records; the caller has to supply the developer's threads. */

import type { Memory } from '../../../memory/memory.ts'
import type { RunLimits } from '../../../runtime/program.ts'
import type { ReplayEntry } from '../../../runtime/replay/external-entry.ts'
import { limitsOf, missingThreads, rulesOf } from '../../../runtime/replay/journal-reader.ts'
import { type Replay, replayRun } from '../../../runtime/replay/replay.ts'
import type { RuleThread } from '../../../runtime/rules/rule-thread.ts'
import { type PreparedThread, prepareThreads } from '../../../runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from '../../../runtime/threads/thread.ts'
import type { ReplayedRun, Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { runLimits } from '../../setup/run-limits.ts'
import { resolveRun } from '../records-base.ts'
import { sealsOf } from './create-record.ts'
import { alteration, withAlteration } from './receipt-check.ts'

/** `guessed`: the journal of the run has no limits because it is older than that feature, so the configured limits are used. */
export type PastRun = {
  readonly runId: string
  readonly entries: readonly ReplayEntry[]
  readonly rules: readonly RuleThread[]
  readonly limits: RunLimits
  readonly guessed: boolean
}

/**
 * `missing`: descriptions of threads that the run had and the caller did not supply; the run was then not replayed, and only its record was
 * checked.
 */
export type RunAgain = Replay & { readonly missing?: readonly string[] }

/** @returns undefined when the rules of the run cannot be read from its journal. */
export function pastRun(setup: Setup, { journal }: Pick<Memory, 'journal'>, runId: string): PastRun | undefined {
  const entries = journal.events(runId)
  const [limits, rules] = [limitsOf(entries), rulesOf(entries)]
  return (
    rules && {
      runId,
      entries,
      rules,
      limits: limits ?? guessedLimits(setup),
      guessed: limits === undefined && entries[0]?.type === 'run.start',
    }
  )
}

/** Like pastRun. @throws FailureError `integrity` instead of returning undefined */
export function readablePastRun(setup: Setup, memory: Pick<Memory, 'journal'>, runId: string): PastRun {
  const past = pastRun(setup, memory, runId)
  if (past) return past
  throw new FailureError('integrity', `${runId}: event 1: the rules of this run cannot be read back from its journal`)
}

export function runAgain(setup: Setup, memory: Pick<Memory, 'journal'>, run: PastRun, joined: readonly PreparedThread[] = []): RunAgain {
  const altered = alteration(memory, run.runId, sealsOf(setup))
  const missing = missingThreads(run.entries, joined)
  if (missing.length === 0) return withAlteration(replayRun({ ...run, joined }), altered)
  const ended = run.entries.some(({ kind, type }) => kind === 'note' && type === 'finish')
  return { events: [], digest: '', context: { trimmed: 0 }, ended, missing, divergence: altered }
}

type ReplayRequest = { readonly setup: Setup; readonly memory: Memory; readonly ref: string; readonly threads: readonly AnyUserThread[] }

/** @throws FailureError `integrity` when the run was altered, `error` when it does not exist or its threads are missing */
export function replayWith({ setup, memory, ref, threads }: ReplayRequest): ReplayedRun {
  const { runId } = resolveRun(memory, ref)
  const past = readablePastRun(setup, memory, runId)
  const { events, digest, ended, divergence, missing } = runAgain(setup, memory, past, prepareThreads(threads))
  if (divergence) throw new FailureError('integrity', `${runId}: ${divergence.message} (journal entry ${divergence.seq})`)
  if (missing)
    throw new FailureError(
      'error',
      missing.map((one) => `${runId} is not run again: ${one}`),
    )
  return { runId, events, digest, ended }
}

/** A run without recorded limits is older than the rule against repeated results. */
function guessedLimits({ config }: Setup): RunLimits {
  const { maxSameResults: _, ...limits } = runLimits(config)
  return limits
}
