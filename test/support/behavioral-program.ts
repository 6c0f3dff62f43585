/** Starts programs for the tests, and tells every event that happened. */

import {
  type BehavioralOptions,
  behavioral,
  bSync,
  bThread,
  type Idioms,
  type RulesFunction,
  type SnapshotMessage,
} from '../../src/library/behavioral.ts'

export const request = (type: string, detail?: unknown) => bSync({ request: { type, detail } })
export const waitFor = (listener: Idioms['waitFor'], more: Idioms = {}) => bSync({ waitFor: listener, ...more })
export const block = (listener: Idioms['block']) => bSync({ block: listener })
export const times = (count: number, rule: RulesFunction) => bThread([rule], count)

/** Starts a program whose snapshots tell every event that happened, with or without a handler. */
export function start(threads: { readonly [name: string]: RulesFunction }, options?: BehavioralOptions) {
  const program = behavioral(options)
  const happened: string[] = []
  const messages: SnapshotMessage[] = []
  program.useSnapshot((message) => {
    messages.push(message)
    if (message.kind === 'selection') happened.push(...message.bids.filter(({ selected }) => selected).map(({ type }) => type))
  })
  program.bThreads.set(threads)
  const send = (...types: string[]) => {
    for (const type of types) program.trigger({ type })
    return happened
  }
  return { ...program, happened, messages, send }
}
