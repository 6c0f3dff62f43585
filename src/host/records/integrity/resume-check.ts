/** Checks receipts, journal and turns of a conversation before it continues, so that no conversation continues on an altered record. */

import { attempts } from '../../../memory/journal/attempts.ts'
import type { RunRecord } from '../../../memory/journal/journal.ts'
import type { Memory } from '../../../memory/memory.ts'
import type { Projections } from '../../../memory/rebuild/rebuild.ts'
import type { RecordWriter } from '../../../memory/record-writer.ts'
import { judgeSome } from '../../../receipts/verify/deep.ts'
import { isConsistent } from '../../../receipts/verify/log-end.ts'
import type { PreparedThread } from '../../../runtime/threads/prepare-thread.ts'
import type { SandboxKind } from '../../../sandbox/contract.ts'
import type { Setup } from '../../api.ts'
import { FailureError } from '../../failure.ts'
import { receiptPaths } from './create-record.ts'
import { brokenChain, checkChain } from './receipt-check.ts'
import { pastRun, runAgain } from './run-again.ts'

export type Resumption = {
  readonly setup: Setup
  readonly memory: Memory
  readonly record: RecordWriter
  readonly sandbox?: SandboxKind
  readonly conversationId: string
  /** The developer's own threads, which earlier runs may have used. */
  readonly threads?: readonly PreparedThread[]
  /** True when the operator has seen the problem and continues anyway. */
  readonly accept: boolean
}

/** The model sees the latest runs; `replay --all` and `rebuild --check` check older ones. */
const runsChecked = 50

/** @throws FailureError `integrity` when something was altered and that is not accepted */
export async function assertIntact(request: Resumption): Promise<void> {
  const { setup, record, conversationId, accept } = request
  const problem = await firstProblem(request)
  if (problem === undefined) return
  if (!accept) {
    const how = 'see: braidclaw receipt verify --deep, braidclaw replay --all, braidclaw rebuild --check'
    throw new FailureError(
      'integrity',
      `${conversationId} was altered and is not continued: ${problem}; ${how}; to continue anyway, which leaves a receipt: --accept-altered`,
    )
  }
  await record.prepare()
  const receipt = record.recordAction({
    conversationId,
    tool: 'session.accept_altered',
    input: { problem },
    risk: 'high',
    ...(request.sandbox === 'none' ? { sandbox: request.sandbox } : {}),
  })
  setup.log('warn', 'altered conversation accepted', { conversation: conversationId, problem, receipt: receipt ?? 'none' })
}

/** Another process may write between two checks, so a problem counts only if it remains while nobody can write. */
async function firstProblem({ setup, memory, conversationId, threads: joined = [] }: Resumption): Promise<string | undefined> {
  const projections = await memory.projections()
  const findProblem = () => problemIn(conversationId, { setup, memory, projections, joined })
  return findProblem() === undefined ? undefined : memory.transaction(findProblem)
}

function problemIn(conversationId: string, examination: Examination): string | undefined {
  const { setup, memory, projections } = examination
  const runs = memory.journal.runs({ limit: runsChecked, conversation: conversationId })
  for (const run of runs) {
    const problem = wrongWith(run, examination)
    if (problem !== undefined) return problem
  }
  const summary = projections.alteredSummary(conversationId)
  if (summary !== undefined) return summary
  return setup.config.receipts.enabled ? wrongWithReceipts(setup, memory, runs) : undefined
}

/** Compares the end of the log with the database, and of its contents only the receipts of these runs. */
function wrongWithReceipts(setup: Setup, memory: Memory, runs: readonly RunRecord[]): string | undefined {
  const paths = receiptPaths(setup)
  if (!isConsistent(paths, memory.checkpoint.get())) {
    const [broken] = checkChain({ setup, memory, deep: false }).found.problems
    if (broken) return brokenChain(broken)
  }
  return judgeSome(
    paths,
    runs.flatMap(({ runId }) => [...attempts(memory.store, runId)]),
  ).problems[0]?.message
}

type Examination = {
  readonly setup: Setup
  readonly memory: Memory
  readonly projections: Projections
  readonly joined: readonly PreparedThread[]
}

/**
 * Checks the journal first, because the other checks compare with it. A run whose threads are missing is not replayed, and that is logged.
 */
function wrongWith(run: RunRecord, { setup, memory, projections, joined }: Examination): string | undefined {
  const past = pastRun(setup, memory, run.runId)
  if (past === undefined) return `the rules of ${run.runId} cannot be read back from its journal`
  const { divergence, missing = [] } = runAgain(setup, memory, past, joined)
  if (divergence !== undefined) return `${run.runId}: ${divergence.message} (journal entry ${divergence.seq})`
  if (missing.length > 0) setup.log('warn', 'run not run again', { run: run.runId, missing: missing.join('; ') })
  return projections.differenceIn(run)
}
