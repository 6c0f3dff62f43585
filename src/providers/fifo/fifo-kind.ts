/** Registers the provider behind two FIFOs; what speaks through them is loaded when it is used. */

import type { Rows } from '../../kit/settings.ts'
import type { ProviderKind } from '../provider-kind.ts'
import { model, totalTimeout } from '../rows.ts'
import { seedModel } from './seed-model.ts'

const settings = {
  model: { ...model, default: seedModel },
  total_timeout_s: totalTimeout,
  dir: {
    type: 'path',
    default: '/tmp/planckclaw',
    about: 'The folder with the FIFOs brain_in and brain_out, whose other ends are the model (docs/daemon.md).',
  },
} as const satisfies Rows

export const fifo = {
  kind: 'fifo',
  settings,
  async create({ name, settings: { model, dir, totalTimeoutS }, deps }) {
    const { createFifoProvider } = await import('./fifo-provider.ts')
    return createFifoProvider({ name, model, ask: await deps.brain({ dir, timeoutMs: totalTimeoutS * 1000 }) })
  },
} as const satisfies ProviderKind<typeof settings>
