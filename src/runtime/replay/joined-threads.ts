/** Finds the developers' threads of a past run and compares them with the available ones. */

import type { PreparedThread } from '../threads/prepare-thread.ts'
import { type Entry, externalOf } from './external-entry.ts'

export type JoinedThread = Pick<PreparedThread, 'name' | 'digest'>

export function joinedThreads(entries: readonly Entry[]): JoinedThread[] {
  return entries.flatMap((entry) => {
    const event = externalOf(entry)
    return event?.type === 'thread.add' ? [{ name: event.name, digest: event.digest }] : []
  })
}

/** @returns a sentence for each thread of the run that is missing or has changed since */
export function missingThreads(entries: readonly Entry[], given: readonly PreparedThread[]): string[] {
  return joinedThreads(entries).flatMap(({ name, digest }) => {
    const own = given.find((each) => each.name === name)
    if (own === undefined) return [`the run had the thread "${name}" (digest ${digest}), which is not given`]
    return own.digest === digest ? [] : [`the run had the thread "${name}" with the digest ${digest}; the one given has ${own.digest}`]
  })
}
