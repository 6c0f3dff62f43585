/** Provides a bounded run with a developer's threads, and the threads that tests add. */

import type { AgentEvent, RunEvent } from '../../src/runtime/event.ts'
import type { Thread, ThreadBid } from '../../src/runtime/threads/thread.ts'
import { collect, type Script, stage } from './agent.ts'

export const always = (name: string, bid: ThreadBid): Thread<null> => ({ name, init: null, bid: () => bid, next: (state) => state })

/** A thread that makes this bid from the first event of the type on. */
export const after = (type: RunEvent['type'], bid: ThreadBid, own: Partial<Thread<boolean>> = {}): Thread<boolean> => ({
  name: 'planted',
  init: false,
  bid: (seen) => (seen ? bid : { wait: [{ type } as { type: 'act' }] }),
  next: () => true,
  ...own,
})

export const oneCall: Script = { replies: [{ calls: [{ id: 'a' }] }, { text: 'done' }] }

/** Bounded, so that a hanging run fails here and not at the time limit of the test. */
export async function run(script: Script, on?: (event: AgentEvent) => unknown) {
  const staged = stage({ ...script, limits: { maxMs: 5000, ...script.limits } })
  const events = await collect(staged.agent, 'go', on)
  const error = events.find((event) => event.type === 'error')
  return { ...staged, events, error: error?.type === 'error' ? error.message : '', ending: staged.agent.ending() }
}
