/** Runs one turn of a program's agent in wiggum mode, as a stream of events that ends with one `done`. */

import type { Conversation, ConversationOptions, Host } from '../../host/api.ts'
import { commandCheck } from '../../host/checks/find-checks.ts'
import { FailureError } from '../../host/failure.ts'
import { beginWiggum } from '../../host/run/wiggum/begin-wiggum.ts'
import { workOn } from '../../host/run/wiggum/wiggum-run.ts'
import { errorText } from '../../kit/errors.ts'
import { createQueue } from '../../kit/queue.ts'
import type { ModeChange } from '../../runtime/create-agent.ts'
import type { AgentEvent, Ending } from '../../runtime/event.ts'
import type { AgentCheck } from './agent-api.ts'

type WiggumTurnOptions = {
  readonly host: Host
  readonly brought: Pick<ConversationOptions, 'provider' | 'tools' | 'threads'>
  readonly checks: readonly AgentCheck[]
  readonly prompt: string
  readonly mode: ModeChange
  readonly signal: AbortSignal
}

export type WiggumTurn = { events(): AsyncGenerator<AgentEvent>; conversation(): Conversation | undefined; ending(): Ending | undefined }

export function createWiggumTurn({ host, brought, checks, prompt, mode, signal: given }: WiggumTurnOptions): WiggumTurn {
  const { setup } = host
  const left = new AbortController()
  const signal = AbortSignal.any([given, left.signal])
  const queue = createQueue<AgentEvent>(Number.MAX_SAFE_INTEGER)
  const state: { conversation?: Conversation; ending?: Ending; done?: Extract<AgentEvent, { type: 'done' }> } = {}
  const say = (line: string) => setup.log('info', line)
  const show = (event: AgentEvent) => {
    // Only the last one ends the turn: the provider may fail, and the result is applied after the run.
    if (event.type === 'done') state.done = event
    else void queue.push(event)
  }

  async function work(): Promise<Ending> {
    const { maxIter, maxIterations = maxIter, maxSame, until } = mode
    const specs = checks.map(({ name, ...check }) => ({ ...commandCheck(check.command), ...check, name: name ?? check.command }))
    const choices = { checks: specs, maxIterations, maxSame, until }
    const record = await beginWiggum({ host, setup, prompt, choices, channel: 'library', say, signal })
    if (record === undefined) return { stop: 'end_turn', code: 'answered', message: 'the checks pass already' }
    const opened = (conversation: Conversation) => void Object.assign(state, { conversation })
    return (await workOn({ host, setup, record, show, say, signal, brought, opened })).ending
  }

  async function run(): Promise<void> {
    const ending = await work().catch((error: unknown): Ending => {
      const code = error instanceof FailureError && error.code !== 'usage' ? error.code : 'error'
      const message = errorText(error)
      void queue.push({ type: 'error', code, message, recoverable: false })
      return { stop: code === 'cancelled' ? 'cancelled' : 'error', code, message }
    })
    state.ending = ending
    void queue.push({ type: 'done', ...state.done, stopReason: ending.stop })
    queue.close()
  }

  return {
    async *events() {
      const running = run()
      try {
        yield* queue.items()
      } finally {
        // Whoever leaves the loop cancels the turn.
        if (state.ending === undefined) left.abort('program')
        await running
      }
    },
    conversation: () => state.conversation,
    ending: () => state.ending,
  }
}
