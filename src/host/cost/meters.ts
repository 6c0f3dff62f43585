/**
 * Provides the meters of a conversation's model calls, and loads them only where the configuration has a budget, so that other homes pay
 * nothing.
 */

import type { LimitsConfig } from '../../config/config.ts'
import type { Memory } from '../../memory/memory.ts'
import type { OneWriter } from '../../memory/recorder.ts'
import type { Log, Meter } from '../../runtime/port.ts'
import type { Payer } from './budget.ts'

/** Returns the meter of a run, or, without a run id, of the conversation's other calls. */
export type Meters = (runId?: string) => Meter | undefined

type Store = { readonly memory: Pick<Memory, 'budget'>; readonly recorder: Pick<OneWriter, 'add'> }

type Configured = { readonly config: { readonly limits: LimitsConfig }; readonly log: Log }

export async function metersOf({ memory, recorder }: Store, { config, log }: Configured, payer: Omit<Payer, 'runId'>): Promise<Meters> {
  const { limits } = config
  if (!hasBudget(limits)) return () => undefined
  const { meterFor } = await import('./budget.ts')
  const options = { limits, memory, add: recorder.add, log, now: Date.now, warned: new Set<string>() }
  return (runId) => meterFor(options, { ...payer, ...(runId ? { runId } : {}) })
}

export function hasBudget(limits: LimitsConfig): boolean {
  const perDay = [limits.dailyTokens, limits.dailyUsd, limits.agentDailyTokens, limits.agentDailyUsd]
  const perSource = [limits.channelDailyTokens, limits.channelDailyUsd, limits.tokenDailyTokens, limits.tokenDailyUsd]
  const lasting = [limits.maxRunTokens, limits.maxRunUsd, limits.maxConversationTokens, limits.maxConversationUsd]
  return [...perDay, ...perSource, ...lasting].some((limit) => limit !== undefined)
}
