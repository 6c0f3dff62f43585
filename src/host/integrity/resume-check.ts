/** A conversation is gone on with only when its record is what was written: receipts, journal and turns are checked first. */

import type { RunRecord } from '../../memory/journal/journal.ts'
import type { Seal } from '../../memory/journal/run-end.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Projections } from '../../memory/rebuild.ts'
import type { RecordWriter } from '../../memory/record-writer.ts'
import { judgeSome } from '../../receipts/deep.ts'
import { atRest } from '../../receipts/resting.ts'
import { limitsOf, rulesOf } from '../../runtime/replay/journal-reader.ts'
import { replayRun } from '../../runtime/replay/replay.ts'
import type { SandboxKind } from '../../sandbox/confinement.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { runLimits } from '../setup/run-limits.ts'
import { alteration } from './altered-entry.ts'
import { brokenChain, checkChain } from './receipt-check.ts'
import { receiptPaths, sealsOf } from './recovery.ts'

export type Resumption = {
  readonly setup: Setup
  readonly memory: Memory
  readonly record: RecordWriter
  readonly sandbox?: SandboxKind
  readonly conversationId: string
  /** The operator has seen what is wrong and goes on. */
  readonly accept: boolean
}

/** The latest runs are what the model will see; older ones are for `replay --all` and `rebuild --check`. */
const runsChecked = 50

/** @throws FailureError integrity when something was altered and that is not accepted */
export async function mustBeWhole(wanted: Resumption): Promise<void> {
  const { setup, record, conversationId, accept } = wanted
  const problem = await firstProblem(wanted)
  if (problem === undefined) return
  if (!accept) {
    const how = 'see: braidclaw receipt verify --deep, braidclaw replay --all, braidclaw rebuild --check'
    throw new FailureError(
      'integrity',
      `${conversationId} was altered and is not gone on with: ${problem}; ${how}; to go on all the same, which leaves a receipt: --accept-altered`,
    )
  }
  const receipt = record.deed({
    conversationId,
    tool: 'session.accept_altered',
    input: { problem },
    risk: 'high',
    ...(wanted.sandbox === 'none' ? { sandbox: wanted.sandbox } : {}),
  })
  setup.log('warn', 'altered conversation accepted', { conversation: conversationId, problem, receipt: receipt ?? 'none' })
}

/** Another process may write between two looks: only what is still wrong while nobody can write is wrong. */
async function firstProblem({ setup, memory, conversationId }: Resumption): Promise<string | undefined> {
  const projections = await memory.projections()
  const seal = sealsOf(setup)
  const look = () => problemIn(conversationId, { setup, memory, projections, seal })
  return look() === undefined ? undefined : memory.transaction(look)
}

function problemIn(conversationId: string, desk: Desk): string | undefined {
  const { setup, memory, projections } = desk
  const runs = memory.journal.runs({ limit: runsChecked, conversation: conversationId })
  for (const run of runs) {
    const problem = wrongWith(run, desk)
    if (problem !== undefined) return problem
  }
  const summary = projections.alteredSummary(conversationId)
  if (summary !== undefined) return summary
  return setup.config.receipts.enabled ? wrongWithReceipts(setup, memory, runs) : undefined
}

/** That the log ends where the database says is one look; of what stands in it, only the receipts of these runs matter here. */
function wrongWithReceipts(setup: Setup, memory: Memory, runs: readonly RunRecord[]): string | undefined {
  const paths = receiptPaths(setup)
  if (!atRest(paths, memory.checkpoint.get())) {
    const [broken] = checkChain({ setup, memory, deep: false }).found.problems
    if (broken) return brokenChain(broken)
  }
  return judgeSome(
    paths,
    runs.flatMap(({ runId }) => [...memory.attempts(runId)]),
  ).problems[0]?.message
}

type Desk = { readonly setup: Setup; readonly memory: Memory; readonly projections: Projections; readonly seal: Seal | undefined }

/** The journal first: it is what the others are held against. */
function wrongWith(run: RunRecord, { setup, memory, projections, seal }: Desk): string | undefined {
  const altered = alteration(memory, run.runId, seal)
  if (altered !== undefined) return `${run.runId}: ${altered.message} (journal entry ${altered.seq})`
  const difference = projections.differenceIn(run)
  if (difference !== undefined) return difference
  const entries = memory.journal.events(run.runId)
  const rules = rulesOf(entries)
  if (rules === undefined) return `the rules of ${run.runId} cannot be read back from its journal`
  const found = replayRun({ runId: run.runId, entries, limits: limitsOf(entries) ?? runLimits(setup.config), rules })
  return found.divergence ? `${run.runId}: ${found.divergence.message}` : undefined
}
