/** Counts the requests of each user in the current minute. */

/** `over` is the first request above the limit; `silent` those after it, which leave no receipt of their own. */
export type Rate = 'within' | 'over' | 'silent'

/** Users are few: the counts of earlier minutes go when a new minute begins. */
export function createRequestRate(perMinute: number, now: () => number): (uid: number) => Rate {
  const state = { minute: 0, counts: new Map<number, number>() }
  return (uid) => {
    const minute = Math.floor(now() / 60_000)
    if (minute !== state.minute) Object.assign(state, { minute, counts: new Map<number, number>() })
    const count = (state.counts.get(uid) ?? 0) + 1
    state.counts.set(uid, count)
    if (count <= perMinute) return 'within'
    return count === perMinute + 1 ? 'over' : 'silent'
  }
}
