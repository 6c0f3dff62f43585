/** Compacts a long conversation: the model that answers in it summarises its older turns. */

import { errorText } from '../../kit/errors.ts'
import { summariserOf } from '../../memory/conversations/compact.ts'
import { turnSummaryRequest } from '../../memory/conversations/summary-words.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Meter, ModelWindow, Provider, SummariseTurn } from '../../runtime/port.ts'
import type { Setup } from '../api.ts'
import type { Payer } from '../cost/budget.ts'
import { counted } from '../cost/counted.ts'

export type Room = {
  readonly setup: Setup
  readonly memory: Memory
  readonly conversationId: string
  readonly provider: Provider
  readonly window: ModelWindow
  readonly payer: Omit<Payer, 'runId'>
  /** Absent when there is no budget. */
  readonly meter: Meter | undefined
  readonly tell: (line: string) => void
  readonly signal: AbortSignal
}

/** The most bytes of a conversation that go to the model at a time, about half of its window; the rest waits for the next turn. */
const [mostBytes, bytesOfHalf] = [262_144, 1.5]

/** Any failure leaves the conversation unchanged, and the next turn tries again. */
export async function compactConversation(room: Room): Promise<void> {
  const { setup, memory, conversationId, provider, window, payer, meter, tell, signal } = room
  const { config, log, redactor } = setup
  const { historyMax: max, historyKeep: keep } = config.memory
  const summarise = summariserOf({ provider: counted(provider, { memory, payer, meter }), model: config.defaultModel })
  try {
    const summaries = await memory.summaries()
    await window.ready(signal)
    await summaries.compact({
      conversationId,
      lengths: { max, keep, portionBytes: Math.min(mostBytes, Math.floor(window.tokens() * bytesOfHalf)) },
      summarise: (request, stop) => {
        tell('note: the conversation is long; summarising its older part (the whole of it stays searchable)')
        return summarise(request, stop)
      },
      signal,
      redact: redactor.text,
    })
  } catch (error) {
    log('warn', 'compaction failed', { why: errorText(error) })
  }
}

export type TurnRoom = Pick<Room, 'setup' | 'memory' | 'provider' | 'payer' | 'meter'>

/** Returns what summarises the middle of a turn; its cost is recorded as that of summaries is. */
export function turnSummariser({ setup: { config, log }, memory, provider, payer, meter }: TurnRoom): SummariseTurn {
  const summarise = summariserOf({ provider: counted(provider, { memory, payer, meter }), model: config.defaultModel })
  return async (request, signal) => {
    try {
      const answer = await summarise(turnSummaryRequest(request), signal)
      if (answer.ok) return { text: answer.text, ...(answer.usage ? { usage: answer.usage } : {}) }
      log('warn', 'summary of the turn failed', { why: answer.message })
    } catch (error) {
      log('warn', 'summary of the turn failed', { why: errorText(error) })
    }
    return undefined
  }
}
