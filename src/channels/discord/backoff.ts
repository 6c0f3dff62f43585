/** How long to wait for Discord after a connection ended, and whether its session is worth coming back to. */

import type { Ended } from './shard.ts'

/** @param failures connections in a row that were never ready. @returns milliseconds: 5, 10, 20, 40 and from then on 60 s */
export function pauseMs(failures: number): number {
  return Math.min(60_000, 5_000 * 2 ** Math.min(failures, 10))
}

/** The server asked for it, or stopped to answer on a connection that had been good: it has a session and is waiting, or all is lost anyway. */
export function isWantedAtOnce({ next, code, wasAcked }: Ended): boolean {
  return next === 'resume' && code === undefined && wasAcked
}

/** As many times the place of a session may be out of reach: a night's sleep of this machine, or a server that is no more. */
const PATIENCE = 3

/** Discord's "session timed out": it would refuse to resume. */
const TIMED_OUT = 4009

/** A session outlives the network: where nobody answered, nobody has ended it. */
export function isWorthResuming({ next, code, saidHello }: Ended, failures: number): boolean {
  if (code === TIMED_OUT) return false
  if (!saidHello) return failures < PATIENCE
  return next === 'resume'
}
