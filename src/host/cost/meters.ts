/**
 * Provides the meters of a conversation's model calls, and loads them only where the configuration has a budget, so that other homes pay
 * nothing.
 */

import type { LimitsConfig } from '../../config/config.ts'
import type { Memory } from '../../memory/memory.ts'
import type { OneWriter } from '../../memory/recorder.ts'
import type { Meter } from '../../runtime/port.ts'
import type { Setup } from '../api.ts'
import type { Payer } from './budget.ts'

/** Returns the meter of a run, or, without a run id, of the conversation's other calls. */
export type Meters = (runId?: string) => Meter | undefined

type Store = { readonly memory: Pick<Memory, 'budget'>; readonly recorder: Pick<OneWriter, 'add'> }

export async function metersOf({ memory, recorder }: Store, { config, log }: Setup, payer: Omit<Payer, 'runId'>): Promise<Meters> {
  const { limits } = config
  if (!hasBudget(limits)) return () => undefined
  const { meterFor } = await import('./budget.ts')
  return (runId) => meterFor({ limits, memory, add: recorder.add, log, now: Date.now }, { ...payer, ...(runId ? { runId } : {}) })
}

export function hasBudget(limits: LimitsConfig): boolean {
  const { maxRunTokens, maxRunUsd, maxConversationTokens, maxConversationUsd } = limits
  const { agentDailyTokens, agentDailyUsd, dailyTokens, dailyUsd } = limits
  const all = [maxRunTokens, maxRunUsd, maxConversationTokens, maxConversationUsd, agentDailyTokens, agentDailyUsd, dailyTokens, dailyUsd]
  return all.some((limit) => limit !== undefined)
}
