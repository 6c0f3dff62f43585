/** Keeps the lease of one run: beats at a third of it, and says when it is lost, by a clock of our own that nobody sets. */

import { sleep, within } from '../../../kit/abort.ts'
import { PlaneRefusal, type RefusalCode } from '../../contract/plane-refusal.ts'
import type { Beat, Claim } from '../../contract/task-shapes.ts'

/** `lost`: nothing may be written under this token any more. `cancelled`: an operator asked for it; the lease is still ours. */
export type LeaseNews = { readonly kind: 'lost' | 'cancelled'; readonly why: string }

export type LeaseOptions = {
  readonly claim: Pick<Claim, 'lease_until' | 'task'>
  /** When the claim was sent, by `monotonic`. */
  readonly claimedAt: number
  /** Used when the claim does not tell how long its lease is, in seconds. */
  readonly usualSeconds: number
  readonly beat: () => Promise<Beat>
  readonly monotonic: () => number
  /** Aborted when the worker ends without an answer: the lease then runs out by itself. */
  readonly gone: AbortSignal
}

export type Lease = {
  /** Aborted when the run has to stop; `reason` is LeaseNews. */
  readonly signal: AbortSignal
  /** Aborted when nothing of the run may go on: from then on somebody else may do the task. */
  readonly lost: AbortSignal
  news(): LeaseNews | undefined
  /** False as soon as the lease is lost, also when no beat said so yet. */
  isHeld(): boolean
  /** Milliseconds until it expires. */
  remaining(): number
  /** No beats any more. */
  end(): void
}

/** Answers of the control plane after which this token can never be used again. */
const final: readonly RefusalCode[] = ['lease_lost', 'unauthorized', 'forbidden', 'not_found', 'conflict']

/** A part of the lease in which the processes of the run are ended, so that none is left when somebody else gets the task. */
const reserveMs = (leaseMs: number) => Math.min(1_000, leaseMs / 20)

export function keepLease(options: LeaseOptions): Lease {
  const { beat, monotonic } = options
  const wholeMs = lengthOf(options)
  const leaseMs = wholeMs - reserveMs(wholeMs)
  const stopped = new AbortController()
  const lost = new AbortController()
  const over = new AbortController()
  // A claim that waited for a task got its lease near the answer: nobody here knows when, so a first beat asks at once.
  const hasWaited = monotonic() - options.claimedAt > leaseMs / 3
  const state: { until: number; news?: LeaseNews } = { until: (hasWaited ? monotonic() : options.claimedAt) + leaseMs }

  function tell(news: LeaseNews): void {
    if (state.news?.kind === 'lost') return
    state.news = news
    stopped.abort(news)
    if (news.kind !== 'lost') return
    lost.abort(news)
    over.abort()
  }

  function isExpired(): boolean {
    if (monotonic() < state.until) return false
    tell({ kind: 'lost', why: 'the control plane could not be told that the run goes on before the lease expired' })
    return true
  }

  async function once(): Promise<void> {
    const sent = monotonic()
    try {
      const answer = await within(Math.max(1, state.until - sent), beat())
      if (answer === undefined) return
      const { cancel_requested } = answer
      // A cancelled run that knows it gets no more time.
      if (!(cancel_requested && state.news)) state.until = Math.max(state.until, sent + leaseMs)
      if (cancel_requested) tell({ kind: 'cancelled', why: 'an operator cancelled the task' })
    } catch (error) {
      if (error instanceof PlaneRefusal && final.includes(error.code)) tell({ kind: 'lost', why: error.message })
    }
  }

  async function beats(): Promise<void> {
    if (hasWaited) await once()
    for (let failed = false; !over.signal.aborted; ) {
      const rest = Math.max(1, state.until - monotonic())
      // After a failed beat the next one comes sooner: a third of what is left.
      await sleep(Math.min(rest, failed ? Math.max(50, rest / 3) : leaseMs / 3), over.signal)
      if (over.signal.aborted || isExpired()) return
      const before = state.until
      await once()
      failed = state.until === before
    }
  }

  options.gone.addEventListener('abort', () => tell({ kind: 'lost', why: 'the worker ended before the control plane answered' }), {
    signal: over.signal,
  })
  void beats()
  return {
    signal: stopped.signal,
    lost: lost.signal,
    news: () => state.news,
    isHeld: () => state.news?.kind !== 'lost' && !isExpired(),
    remaining: () => Math.max(0, state.until - monotonic()),
    end: () => over.abort(),
  }
}

/** Both times are of the control plane's clock, so it does not matter how wrong ours is. */
function lengthOf({ claim, usualSeconds }: LeaseOptions): number {
  const length = Date.parse(claim.lease_until) - Date.parse(claim.task.updated_at)
  return Number.isFinite(length) && length > 0 && length <= 86_400_000 ? length : usualSeconds * 1_000
}
