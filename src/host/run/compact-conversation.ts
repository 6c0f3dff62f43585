/** Compacts a long conversation: the model that answers in it summarises its older turns. */

import { summariserOf } from '../../memory/conversations/summarise.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Meter, ModelWindow, Provider } from '../../runtime/port.ts'
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
    log('warn', 'compaction failed', { why: error instanceof Error ? error.message : String(error) })
  }
}
