/** The heartbeat of the seed: state, claim, run, activity, and again. */

import { sleep } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import type { SeedState } from '../contract/activity-shapes.ts'
import { PlaneRefusal } from '../contract/plane-refusal.ts'
import type { Claim } from '../contract/task-shapes.ts'
import { refusedKey } from './identify.ts'
import { isPassing } from './run/asks.ts'
import type { Performing } from './run/performance.ts'
import type { WorkerEnd, WorkerOptions } from './worker-options.ts'

export type Beating = {
  readonly options: WorkerOptions
  /** Aborted when nothing more may be claimed. */
  readonly closing: AbortSignal
  readonly perform: (claimed: Pick<Performing, 'claim' | 'claimedAt'>) => Promise<WorkerEnd>
  /** Returns what the report says of the worker besides `options.facts`. */
  readonly facts: Readonly<Record<string, unknown>>
}

const usualWaitMs = 25_000
const reportEveryMs = 60_000
const inactiveMs = 2_000
const pauses = { firstMs: 500, longestMs: 30_000 } as const

/** Refusals that waiting does not mend. */
const hopeless = ['unauthorized', 'forbidden', 'bad_request']

/** @throws PlaneRefusal when the control plane refuses the worker itself */
export async function heartbeat(beating: Beating): Promise<WorkerEnd> {
  const { options, closing } = beating
  const { say, clock } = options
  const state = { wait: pauses.firstMs as number, trouble: '', reportedAt: Number.NEGATIVE_INFINITY }
  while (!closing.aborted) {
    try {
      if (clock.monotonic() - state.reportedAt >= reportEveryMs) {
        await reportOnce(beating)
        state.reportedAt = clock.monotonic()
      }
      const end = await round(beating)
      if (state.trouble !== '') say('working again')
      Object.assign(state, { wait: pauses.firstMs, trouble: '' })
      if (options.once) return end
    } catch (error) {
      if (closing.aborted) break
      if (error instanceof PlaneRefusal && hopeless.includes(error.code)) throw refusedKey(options, error)
      const trouble = errorText(error)
      if (trouble !== state.trouble) say(`${trouble}; waiting`)
      state.trouble = trouble
      if (error instanceof Inactive) {
        if (options.once) return 'none'
        await sleep(inactiveMs, closing)
        continue
      }
      await sleep(retryAfter(error) ?? state.wait * (0.5 + clock.random() / 2), closing)
      state.wait = Math.min(pauses.longestMs, state.wait * 2)
    }
  }
  return 'stopped'
}

/** One look at the state, one claim, at most one task. */
async function round({ options, closing, perform }: Beating): Promise<WorkerEnd> {
  const { port, agentId, clock, say } = options
  if (!isActive(await port.state(closing), agentId)) throw new Inactive(agentId)
  const claimedAt = clock.monotonic()
  const claim = await port.claim(requestOf(options), closing).catch((error: unknown) => {
    if (closing.aborted) return undefined
    throw error
  })
  if (claim === undefined) return 'none'
  if (closing.aborted) return handBack(options, claim)
  say(`${claim.task.task_id} attempt ${claim.attempt}: ${JSON.stringify(claim.task.title)}`)
  const end = await perform({ claim, claimedAt })
  say(`${claim.task.task_id}: ${end}`)
  return end
}

/** The answer of a claim crossed the request to stop. */
async function handBack({ port }: WorkerOptions, { task, run_token }: Claim): Promise<WorkerEnd> {
  await port.run(run_token).release(task.task_id, { outcome: 'now' })
  return 'released'
}

/** Paused, or its heartbeat is switched off: it asks again, and claims nothing. */
class Inactive extends Error {
  constructor(agentId: string) {
    super(`the agent ${JSON.stringify(agentId)} is paused or its heartbeat is switched off`)
  }
}

function isActive({ agents }: SeedState, agentId: string): boolean {
  return agents.find(({ id }) => id === agentId)?.heartbeat_enabled !== false
}

function requestOf({ role, agentId, labels = [], leaseSeconds, waitMs = usualWaitMs }: WorkerOptions) {
  return { role, agent_id: agentId, wait_ms: waitMs, labels: [...labels], lease_s: leaseSeconds }
}

async function reportOnce({ options, facts }: Beating): Promise<void> {
  const { port, agentId, receipts, tellDecided, tidyCopies, say } = options
  await port.report(agentId, { ...facts, ...options.facts }, receipts?.())
  await tellDecided?.(({ runId, changes }) =>
    port.deliver(runId, { changes }).catch((error: unknown) => {
      if (isPassing(error)) throw error
      say(`${runId}: ${errorText(error)}`)
    }),
  )
  await tidyCopies?.((id) =>
    port.task(id).catch((error: unknown) => {
      if (isPassing(error)) throw error
      return undefined
    }),
  )
}

function retryAfter(error: unknown): number | undefined {
  return error instanceof PlaneRefusal ? error.details.retry_after_ms : undefined
}
