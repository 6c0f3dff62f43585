/** Filters the tools that the model gets: without a working sandbox it gets no shell. */

import { withParts } from '../../config/config.ts'
import type { Log, ToolSpec } from '../../runtime/port.ts'
import type { Trial } from '../../sandbox/trial.ts'

export type Offering = {
  readonly log: Log
  /** Called only when there is a shell to offer. */
  readonly state: () => Promise<Trial>
}

export async function toolsForModel(specs: readonly ToolSpec[], { log, state }: Offering): Promise<readonly ToolSpec[]> {
  if (!specs.some(({ name }) => name === 'shell')) return specs
  const trial = await state()
  if (trial.ok) return specs
  log('warn', 'shell tool off', { why: `no sandbox: ${trial.missing}` })
  const off = withParts(['shell'])
  return specs.filter(({ name }) => !off.includes(name))
}
