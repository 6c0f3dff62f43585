/** One message of a channel from hearing it to answering it: run, answer, and only then make room in the memory. */

import type { Animal, Setup } from '../host/api.ts'
import type { Recall } from '../memory/agent-files/agent-memory.ts'
import { summariserOf } from '../memory/conversations/summarise.ts'
import type { AgentEvent } from '../runtime/event.ts'
import type { Provider } from '../runtime/port.ts'
import type { Heard } from './inbound-message.ts'
import { replyOf, type Told } from './reply-text.ts'
import { behindWire, takeTurn, unanswered } from './take-turn.ts'

export type TurnsOptions = {
  readonly setup: Setup
  readonly animal: Animal
  readonly recall: Recall
  /** Who summarises: the one that answers. */
  readonly provider: Provider
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
}

export type Turns = {
  /** Answers one message; never rejects. */
  take(heard: Heard): Promise<void>
  /** Resolves when no summary is being written. */
  settled(): Promise<void>
}

/** What Discord shows of "typing" fades after ten seconds. */
const WORKING_MS = 8_000

export function createTurns(options: TurnsOptions): Turns {
  const { setup, recall } = options
  const state: { compacting?: Promise<void> } = {}

  async function take(heard: Heard): Promise<void> {
    const told = await whileWorking(heard, () => toldOf(options, heard))
    await heard.answer(told.text)
    if (told.remembered !== undefined) state.compacting ??= compact().finally(() => delete state.compacting)
  }

  /** Beside the next turn: a summary takes a model's time, and must not cost a person's. */
  async function compact(): Promise<void> {
    const { provider, signal } = options
    try {
      await recall.compact(summariserOf({ provider, model: setup.config.defaultModel }), signal)
    } catch (error) {
      setup.log('error', 'compaction failed', { why: wordsOf(error) })
    }
  }

  return { take, settled: async () => state.compacting }
}

async function whileWorking<T>({ working }: Heard, work: () => Promise<T>): Promise<T> {
  working?.()
  const again = working && setInterval(working, WORKING_MS)
  try {
    return await work()
  } finally {
    clearInterval(again)
  }
}

async function toldOf(options: TurnsOptions, { channel, from, text }: Heard): Promise<Told> {
  const { log } = options.setup
  try {
    const { ending, ...rest } = await run(options, text)
    if (ending.code !== 'answered') log('warn', 'turn not answered', { from, channel, code: ending.code, why: ending.message })
    return replyOf({ ending, ...rest })
  } catch (error) {
    log('error', 'turn failed', { from, channel, why: wordsOf(error) })
    return { text: '[failed; the log of the daemon says why]' }
  }
}

async function run({ setup, animal, signal }: TurnsOptions, text: string) {
  const seen: { result?: string } = {}
  const ending = await takeTurn({
    ...behindWire(setup, animal),
    prompt: text,
    render: { show: (event) => note(seen, event), end: () => {} },
    signal,
  })
  return { ending, ...seen, open: unanswered(animal) }
}

function note(seen: { result?: string }, event: AgentEvent): void {
  if (event.type === 'done' && event.result !== undefined) seen.result = event.result
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
