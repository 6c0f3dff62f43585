/** Limits the calls in flight to N, and makes two that write the same path run one after the other, until their changes are decided. */

import type { BThread } from '../../kernel/thread.ts'
import type { RunEvent } from '../event.ts'

type Flight = { readonly id: string; readonly writes: readonly string[] }
export function parallel({ maxParallel }: { readonly maxParallel: number }): BThread<{ readonly inFlight: readonly Flight[] }, RunEvent> {
  return {
    name: 'parallel',
    priority: 31,
    init: { inFlight: [] },
    bid: ({ inFlight }) => ({
      wait: [{ type: 'act' }, { type: 'tool.done' }, { type: 'drop' }],
      block: inFlight.length >= maxParallel ? [{ type: 'act' }] : [{ type: 'act', match: (event) => collides(inFlight, event) }],
    }),
    next({ inFlight }, event) {
      if (event.type === 'act') return { inFlight: [...inFlight, { id: event.id, writes: event.judgement.writes }] }
      if (event.type === 'tool.done' || event.type === 'drop') return { inFlight: inFlight.filter(({ id }) => id !== event.id) }
      return { inFlight }
    },
  }
}

function collides(inFlight: readonly Flight[], event: RunEvent): boolean {
  if (event.type !== 'act') return false
  return inFlight.some(({ writes }) => writes.some((path) => event.judgement.writes.includes(path)))
}
