/** Tells which events start new work, and which bring calls into a run. */

import type { Proposal, RunEvent } from '../event.ts'

/** A thread that stops a run blocks all of them. */
export const beginnings = [
  { type: 'think' },
  { type: 'judge' },
  { type: 'act' },
  { type: 'apply' },
  { type: 'check' },
  { type: 'gate.open' },
] as const

/** Returns the calls that an event brings into the run; undefined for an event that brings none. */
export function broughtBy(event: RunEvent): readonly Proposal[] | undefined {
  if (event.type === 'run.start') return event.continues?.proposals
  return event.type === 'model.done' || event.type === 'judged' ? event.proposals : undefined
}

/** Returns what a run was asked, in the words for people. */
export function askedIn({ prompt, continues }: Extract<RunEvent, { type: 'run.start' }>): string {
  if (continues === undefined) return prompt
  return [`[goes on with ${continues.run}] ${continues.asked}`, prompt].filter(Boolean).join('\n')
}
