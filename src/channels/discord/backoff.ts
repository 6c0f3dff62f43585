/** Decides how long to wait after a Discord connection ended, and whether to resume its session. */

import type { Ended } from './shard.ts'

/** @param failures connections in a row that never became ready. @returns milliseconds: 5, 10, 20, 40 and from then on 60 s */
export function pauseMs(failures: number): number {
  return Math.min(60_000, 5_000 * 2 ** Math.min(failures, 10))
}

/**
 * True when the server asked for a reconnect, or stopped answering on a connection that had been good: it either keeps the session or has
 * lost it anyway.
 */
export function isWantedAtOnce({ next, code, wasAcked }: Ended): boolean {
  return next === 'resume' && code === undefined && wasAcked
}

/** How many times in a row the server of a session may be unreachable: this machine may have slept, or the server may be gone. */
const PATIENCE = 3

/** Discord's code for "session timed out": Discord would refuse to resume. */
const TIMED_OUT = 4009

/** A session outlives the network: when no server answered, no server has ended the session. */
export function isWorthResuming({ next, code, saidHello }: Ended, failures: number): boolean {
  if (code === TIMED_OUT) return false
  if (!saidHello) return failures < PATIENCE
  return next === 'resume'
}
