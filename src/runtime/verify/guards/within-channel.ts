/** Defines P18: people on a channel get no more than its profile permits. */

import type { Property } from '../../../kernel/property.ts'
import type { RunEvent } from '../../event.ts'
import type { RunLimits } from '../../program.ts'

export function withinChannel({ channel }: Pick<RunLimits, 'channel'>): Property<RunEvent, { readonly beyond: boolean }> {
  const isBeyond = (event: RunEvent) => {
    if (event.type === 'apply') return channel?.readonly === true
    if (event.type !== 'act') return false
    return channel?.tools?.includes(event.call.name) === false || (channel?.readonly === true && event.judgement.writes.length > 0)
  }
  return {
    name: 'On a channel with a profile only its tools run, and where it only reads nothing is written or applied.',
    init: { beyond: false },
    next: (monitor, { event }) => (isBeyond(event) ? { beyond: true } : monitor),
    violated: ({ beyond }) => beyond,
  }
}
