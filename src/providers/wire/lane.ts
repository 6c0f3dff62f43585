/** Queues the calls to one provider with one key: limits concurrent calls, keeps their order, and applies one back-off to all. */

import { ProviderFailure } from '../../runtime/port.ts'

/** Timers take 31 bits; a longer wait would fire at once. */
export const longestTimer = 2_147_483_647

export type LaneClock = {
  /** Monotonic, in milliseconds. */
  readonly now: () => number
  /** @returns a function that cancels the timer */
  readonly after: (ms: number, then: () => void) => () => void
}

export type EnterRequest = {
  readonly provider: string
  /** From `lane.ticket()`; a retry keeps its place in the order. */
  readonly ticket: number
  /** The limit of concurrent calls. */
  readonly most: number
  readonly signal: AbortSignal
  /** A call that would have to hold off longer than this fails at once. Milliseconds. */
  readonly patienceMs: number
  /** Called once when the call must wait: the number of calls before it, and how long all calls hold off. */
  readonly onWait: (why: { readonly ahead: number; readonly holdOffMs: number }) => void
}

/** `began` reports that the server has begun to answer. Repeated calls of both functions are harmless. */
export type Pass = { began(): void; leave(): void }

export type Lane = ReturnType<typeof createLane>

type WaitingCall = EnterRequest & { readonly go: (pass: Pass) => void; readonly fail: (error: ProviderFailure) => void }

export function createLane({ now, after }: LaneClock) {
  /** Sorted by ticket. */
  let waiting: WaitingCall[] = []
  const state: { tickets: number; running: number; until: number; cautious: boolean; trying?: Pass; wake?: () => void } = {
    tickets: 0,
    running: 0,
    until: Number.NEGATIVE_INFINITY,
    cautious: false,
  }

  const holdOffMs = () => Math.max(0, state.until - now())

  function next(): void {
    state.wake?.()
    state.wake = undefined
    const left = holdOffMs()
    for (const each of waiting.filter(({ patienceMs }) => left > patienceMs)) {
      waiting = waiting.filter((other) => other !== each)
      each.fail(tooLong(each.provider, left))
    }
    if (left > 0) {
      if (waiting.length > 0) state.wake = after(Math.min(left, longestTimer), next)
      return
    }
    for (let [first] = waiting; first && mayGo(first); [first] = waiting) {
      waiting = waiting.slice(1)
      first.go(begin())
    }
  }

  function mayGo({ most }: EnterRequest): boolean {
    return state.running < most && !(state.cautious && state.trying)
  }

  function begin(): Pass {
    state.running += 1
    const mine = { over: false }
    const pass: Pass = {
      began() {
        if (state.trying !== pass) return
        state.trying = undefined
        state.cautious = false
        next()
      },
      leave() {
        if (mine.over) return
        mine.over = true
        state.running -= 1
        if (state.trying === pass) state.trying = undefined
        next()
      },
    }
    if (state.cautious) state.trying = pass
    return pass
  }

  /** Rejects with the signal's reason, or with a ProviderFailure `rate_limit`. */
  function enter(request: EnterRequest): Promise<Pass> {
    const { signal, ticket, provider, patienceMs, onWait } = request
    if (signal.aborted) return Promise.reject(signal.reason)
    const left = holdOffMs()
    if (left > patienceMs) return Promise.reject(tooLong(provider, left))
    if (waiting.length === 0 && left === 0 && mayGo(request)) return Promise.resolve(begin())
    const { promise, resolve, reject } = Promise.withResolvers<Pass>()
    const mine: WaitingCall = { ...request, go: resolve, fail: reject }
    const giveUp = () => {
      waiting = waiting.filter((each) => each !== mine)
      reject(signal.reason)
      next()
    }
    const place = waiting.findIndex((each) => each.ticket > ticket)
    const ahead = place < 0 ? waiting.length : place
    waiting = waiting.toSpliced(ahead, 0, mine)
    onWait({ ahead, holdOffMs: left })
    signal.addEventListener('abort', giveUp, { once: true })
    next()
    return promise.finally(() => signal.removeEventListener('abort', giveUp))
  }

  return {
    ticket: () => (state.tickets += 1),
    enter,
    /** Stops all calls for this many milliseconds; then one call tries alone, and the others follow when the server answers it. */
    holdOff(ms: number): void {
      state.until = Math.max(state.until, now() + ms)
      state.cautious = true
      next()
    },
  }
}

function tooLong(provider: string, ms: number): ProviderFailure {
  const message = `provider "${provider}" asked for a pause of another ${Math.ceil(ms / 1000)} s; nothing was sent`
  return new ProviderFailure('rate_limit', message, { provider, retryAfterMs: Math.ceil(ms) })
}
