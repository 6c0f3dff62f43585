/** Keeps the lease of one run: sends a beat after each third of it, and reports when it is lost, by a monotonic clock of our own. */

import { sleep, within } from '../../../kit/abort.ts'
import { errorText } from '../../../kit/errors.ts'
import { countRefusals } from '../../contract/plane-refusal.ts'
import type { Beat, Claim } from '../../contract/task-shapes.ts'

/** `lost`: nothing may be written under this token any more. `cancelled`: an operator asked for it; the lease is still ours. */
export type LeaseNews = { readonly kind: 'lost' | 'cancelled'; readonly why: string }

export type LeaseOptions = {
  readonly claim: Pick<Claim, 'lease_until' | 'task'>
  /** Holds when the claim was sent, by `monotonic`. */
  readonly claimedAt: number
  /** Is used when the claim does not say how long its lease is, in seconds. */
  readonly usualSeconds: number
  readonly beat: () => Promise<Beat>
  readonly monotonic: () => number
  /** Aborts when the worker ends without an answer: the lease then expires by itself. */
  readonly disconnected: AbortSignal
}

export type Lease = {
  /** Aborts when the run has to stop; `reason` is LeaseNews. */
  readonly signal: AbortSignal
  /** Aborts when the run must not continue, because another worker may now have the task. */
  readonly lost: AbortSignal
  news(): LeaseNews | undefined
  /** Returns false as soon as the lease is lost, also when no beat has reported it yet. */
  isHeld(): boolean
  /** Returns the milliseconds until it expires. */
  remaining(): number
  /** Stops the beats. */
  end(): void
}

/** Returns the part of the lease in which the processes of the run are ended, so that none is left when another worker gets the task. */
const reserveMs = (leaseMs: number) => Math.min(1_000, leaseMs / 20)

export function keepLease(options: LeaseOptions): Lease {
  const { beat, monotonic } = options
  const wholeMs = lengthOf(options)
  const leaseMs = wholeMs - reserveMs(wholeMs)
  const stopped = new AbortController()
  const lost = new AbortController()
  const over = new AbortController()
  // A claim that waited for a task got its lease shortly before the answer, at an unknown time, so a first beat asks at once.
  const hasWaited = monotonic() - options.claimedAt > leaseMs / 3
  const refusals = countRefusals()
  const state: { until: number; news?: LeaseNews } = { until: (hasWaited ? monotonic() : options.claimedAt) + leaseMs }

  function announce(news: LeaseNews): void {
    if (state.news?.kind === 'lost') return
    state.news = news
    stopped.abort(news)
    if (news.kind !== 'lost') return
    lost.abort(news)
    over.abort()
  }

  function isExpired(): boolean {
    if (monotonic() < state.until) return false
    announce({ kind: 'lost', why: 'no heartbeat reached the control plane before the lease expired' })
    return true
  }

  async function beatOnce(): Promise<void> {
    const sent = monotonic()
    try {
      const answer = await within(Math.max(1, state.until - sent), beat())
      if (answer === undefined) return
      const { cancel_requested } = answer
      refusals.reset()
      // A cancelled run that knows it gets no more time.
      if (!(cancel_requested && state.news)) state.until = Math.max(state.until, sent + leaseMs)
      if (cancel_requested) announce({ kind: 'cancelled', why: 'an operator cancelled the task' })
    } catch (error) {
      if (refusals.isFinal(error)) announce({ kind: 'lost', why: errorText(error) })
    }
  }

  async function keepBeating(): Promise<void> {
    if (hasWaited) await beatOnce()
    for (let failed = false; !over.signal.aborted; ) {
      const rest = Math.max(1, state.until - monotonic())
      // After a failed beat the next one comes sooner: at most a third of what is left.
      await sleep(Math.min(rest, failed ? Math.max(50, Math.min(2_000, rest / 3)) : leaseMs / 3), over.signal)
      if (over.signal.aborted || isExpired()) return
      const before = state.until
      await beatOnce()
      failed = state.until === before
    }
  }

  const leave = () => announce({ kind: 'lost', why: 'the worker ended before the control plane answered' })
  options.disconnected.addEventListener('abort', leave, { signal: over.signal })
  void keepBeating()
  return {
    signal: stopped.signal,
    lost: lost.signal,
    news: () => state.news,
    isHeld: () => state.news?.kind !== 'lost' && !isExpired(),
    remaining: () => Math.max(0, state.until - monotonic()),
    end: () => over.abort(),
  }
}

/** Returns the length in ms. Both times come from the control plane's clock, so a wrong clock of ours does not matter. */
function lengthOf({ claim, usualSeconds }: LeaseOptions): number {
  const length = Date.parse(claim.lease_until) - Date.parse(claim.task.updated_at)
  return Number.isFinite(length) && length > 0 && length <= 86_400_000 ? length : usualSeconds * 1_000
}
