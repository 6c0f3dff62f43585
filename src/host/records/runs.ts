/** Lists runs, and shows one as a transcript with the receipt and the changes of each call. */

import type { RunRecord } from '../../memory/journal/journal.ts'
import { isAlive } from '../../memory/journal/process-owner.ts'
import type { Ending } from '../../runtime/event.ts'
import type { SetSummary } from '../../workspace/changes/contract.ts'
import type { CallChanges, HostRecords, RunFacts, Step } from '../contract/records-api.ts'
import { openKeptChanges } from './integrity/open-kept-changes.ts'
import { resolveRun } from './integrity/run-lookup.ts'
import { limited, type RecordsBase } from './records-base.ts'
import { transcriptOf } from './transcript.ts'

export function runRecords(base: RecordsBase): HostRecords['runs'] {
  const { memory, setup } = base

  function told(run: RunRecord): RunFacts {
    const prompt = memory.journal.prompt(run.runId)
    return { ...factsOf(run), ...(prompt === undefined ? {} : { prompt }) }
  }

  return {
    list({ limit: asked, before, conversationId, ownedBy } = {}) {
      const limit = limited(asked, 20)
      const found = memory.journal.runs({ limit: limit + 1, before, conversation: conversationId, ownedBy })
      const page = found.slice(0, limit)
      const next = found.length > limit ? page.at(-1)?.runId : undefined
      return { runs: page.map(told), ...(next === undefined ? {} : { next }) }
    },
    async show(wanted) {
      const run = resolveRun(memory, wanted)
      const { steps, usage } = transcriptOf(run.runId, memory.journal.events(run.runId))
      const isChanged = steps.some((step) => step.type === 'call' && step.changes?.set !== undefined)
      const sets = isChanged
        ? (await openKeptChanges(setup, async (use) => use(memory))).list().filter(({ about }) => about.run === run.runId)
        : []
      return {
        ...told(run),
        steps: steps.map((step) => withSet(step, sets)),
        ...(usage ? { usage } : {}),
        ...(run.digest === null ? {} : { digest: run.digest }),
      }
    },
  }
}

function factsOf({ runId, conversationId, turnId, channel, provider, model, started, ended, code, message, owner }: RunRecord): RunFacts {
  const facts = { runId, conversationId, turnId, channel, provider, model, started }
  if (ended === null) return { ...facts, running: isAlive(owner) }
  return { ...facts, ended, ...(isCode(code) ? { code } : {}), ...(message === null ? {} : { message }), running: false }
}

/** The column has what `Ending.code` had when the run ended. */
function isCode(code: string | null): code is Ending['code'] {
  return code !== null
}

/** Adds what the kept change set knows. */
function withSet(step: Step, sets: readonly SetSummary[]): Step {
  if (step.type !== 'call' || step.changes === undefined) return step
  const set = sets.find(({ about }) => about.call === step.callId)
  if (!set) return step
  const changes: CallChanges = {
    ...step.changes,
    state: set.state,
    count: set.count,
    ...(set.review ? { summary: set.review.summary } : {}),
  }
  return { ...step, changes }
}
