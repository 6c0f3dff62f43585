/** Reads the journal entries of one run and validates each: it reports an entry that no run writes instead of trusting it. */

import { isObject } from '../../kit/json.ts'
import type { ChannelCap } from '../behaviours/guards/channel.ts'
import type { ExternalEvent } from '../event.ts'
import type { RunLimits } from '../program.ts'
import { type JournalledRules, type RuleThread, threadsOf } from '../rules/rule-thread.ts'
import type { PreparedThread } from '../threads/prepare-thread.ts'
import { externalOf, type ReplayEntry } from './external-entry.ts'

/**
 * The start of a run with its limits and rules; both are absent in older journals. `instructions` were part of the system prompt; the text
 * is left out if an earlier run of the same process has it.
 */
export type RunStart = Extract<ExternalEvent, { type: 'run.start' }> & {
  /** The version of the program; absent in older journals, as `tools`. */
  readonly version?: string | undefined
  /** SHA-256 of the definitions of the tools that the model was offered, as JSON. */
  readonly tools?: string | undefined
  readonly limits?: RunLimits
  readonly rules?: JournalledRules
  readonly instructions?: readonly JournalledInstruction[]
}

/** `sha256` is the hash of the text. */
export type JournalledInstruction = { readonly path: string; readonly sha256: string; readonly text?: string }

/** Returns the limits of a journalled run, if its start has them. */
export function limitsOf(entries: readonly ReplayEntry[]): RunLimits | undefined {
  const limits = startOf(entries)?.limits
  return isLimits(limits) ? limits : undefined
}

/** Returns the rules of a run: none when its start names none, undefined when they cannot be read back. */
export function rulesOf(entries: readonly ReplayEntry[]): RuleThread[] | undefined {
  const rules = startOf(entries)?.rules
  return rules === undefined ? [] : threadsOf(rules)
}

function startOf(entries: readonly ReplayEntry[]): { readonly [key: string]: unknown } | undefined {
  const body = entries.find(({ type }) => type === 'run.start')?.body
  return isObject(body) ? body : undefined
}

function isLimits(value: unknown): value is RunLimits {
  const optional = ['maxTokens', 'maxMicros', 'maxMs', 'maxSameResults']
  return (
    isObject(value) &&
    ['maxToolRounds', 'maxParallel'].every((name) => typeof value[name] === 'number') &&
    optional.every((name) => value[name] === undefined || typeof value[name] === 'number') &&
    (value.channel === undefined || isCap(value.channel))
  )
}

function isCap(value: unknown): value is ChannelCap {
  if (!isObject(value) || typeof value.name !== 'string') return false
  const { tools, readonly } = value
  return (tools === undefined || Array.isArray(tools)) && (readonly === undefined || readonly === true)
}

/** Finds the developers' threads of a past run and compares them with the available ones. */
type JoinedThread = Pick<PreparedThread, 'name' | 'digest'>

export function joinedThreads(entries: readonly ReplayEntry[]): JoinedThread[] {
  return entries.flatMap((entry) => {
    const event = externalOf(entry)
    return event?.type === 'thread.add' ? [{ name: event.name, digest: event.digest }] : []
  })
}

/** @returns a sentence for each thread of the run that is missing or has changed since */
export function missingThreads(entries: readonly ReplayEntry[], given: readonly PreparedThread[]): string[] {
  return joinedThreads(entries).flatMap(({ name, digest }) => {
    const own = given.find((each) => each.name === name)
    if (own === undefined) return [`the run had the thread "${name}" (digest ${digest}), which is not given`]
    return own.digest === digest ? [] : [`the run had the thread "${name}" with the digest ${digest}; the one given has ${own.digest}`]
  })
}
