/** Records what model calls use that belong to no run, such as summaries of a long conversation. */

import type { Memory } from '../../memory/memory.ts'
import { utcDay } from '../../memory/spend/budget-ledger.ts'
import type { Usage } from '../../runtime/event.ts'
import { type Meter, type Provider, ProviderFailure } from '../../runtime/port.ts'
import { costsNothing, sanitizeUsage } from '../../runtime/usage.ts'
import type { Payer } from './budget.ts'

export type Counting = {
  readonly memory: Pick<Memory, 'spend'>
  readonly payer: Omit<Payer, 'runId'>
  /** Absent when there is no budget: then a failed call leaves no reservation, and is recorded as a call of which nothing is known. */
  readonly meter: Meter | undefined
}

/** Returns the same provider; each of its answers is recorded, and reserves budget. */
export function counted(provider: Provider, { memory, payer, meter }: Counting): Provider {
  async function keep(model: string, used: Usage | 'unknown'): Promise<void> {
    const table = await memory.spend()
    table.addSummary({ ...payer, provider: provider.name, model, priced: true }, utcDay(Date.now()), used)
  }
  return {
    ...provider,
    async *chat(request, signal) {
      try {
        for await (const chunk of provider.chat({ ...request, ...(meter ? { meter } : {}) }, signal)) {
          if (chunk.type === 'done') await keep(chunk.response.model, sanitizeUsage(chunk.response.usage))
          yield chunk
        }
      } catch (error) {
        if (!meter && !(error instanceof ProviderFailure && costsNothing(error))) await keep(request.model, 'unknown')
        throw error
      }
    },
  }
}
