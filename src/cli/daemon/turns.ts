/** One message of a channel from hearing it to remembering it: run, answer, remember, and only then make room in the memory. */

import type { Heard } from '../../channels/heard.ts'
import { takeTurn } from '../../channels/turn.ts'
import type { Recall } from '../../memory/recall/recall.ts'
import { summariserOf } from '../../memory/recall/summarise.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import type { Provider } from '../../runtime/port.ts'
import type { Mirror } from '../mirror.ts'
import type { Animal, Setup } from '../world.ts'
import { replyOf } from './reply.ts'

export type TurnsOptions = {
  readonly setup: Setup
  readonly animal: Animal
  readonly recall: Recall
  readonly mirror: Mirror
  /** Who summarises: the one that answers. */
  readonly provider: Provider
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
}

/** @returns what answers one message; it never rejects. */
export function createTurns(options: TurnsOptions): (heard: Heard) => Promise<void> {
  const { setup, recall } = options
  return async (heard) => {
    try {
      heard.working?.()
      const told = await run(options, heard.text)
      await heard.answer(told.text)
      if (!told.isAnswer) return
      const kept = recall.remember(heard.text, told.text)
      if (!kept.ok) setup.log('error', 'history not written', { why: kept.message })
      const { provider, signal } = options
      await recall.compact(summariserOf({ provider, model: setup.config.defaultModel }), signal)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      setup.log('error', 'turn failed', { why })
      await heard.answer('[failed; the log of the daemon says why]')
    }
  }
}

async function run({ setup, animal, mirror, signal }: TurnsOptions, text: string) {
  const { agent, memory } = animal
  const seen: { result?: string } = {}
  mirror.begin(text, agent.conversationId)
  const ending = await takeTurn({
    agent,
    prompt: text,
    render: { show: (event) => note(seen, mirror, event), end: () => {} },
    always: animal.allowAlways,
    isStanding: animal.isStanding,
    tell: (line) => setup.log('info', line),
    gone: () => false,
    signal,
  })
  mirror.end()
  const open = memory.approvals.list({ state: 'open' }).filter(({ runId }) => runId === agent.runId())
  return replyOf({ ending, ...seen, open: open.map(({ id }) => id) })
}

function note(seen: { result?: string }, mirror: Mirror, event: AgentEvent): void {
  mirror.show(event)
  if (event.type === 'done' && event.result !== undefined) seen.result = event.result
}
