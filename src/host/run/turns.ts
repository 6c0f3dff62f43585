/** Runs the turns of one conversation: one at a time, each waiting for a slot in the process-wide queue, and each cancelled as a whole. */

import { atEnd } from '../../kit/errors.ts'
import { createId } from '../../kit/sha256.ts'
import type { Agent } from '../../runtime/create-agent.ts'
import type { AgentEvent, Ending, PictureRef } from '../../runtime/event.ts'
import type { ModelChunk, Picture, Provider } from '../../runtime/port.ts'
import type { Conversation, TurnStart } from '../api.ts'
import type { Hooks } from '../toolset/guests/hooks/open-hooks.ts'

type Turns = Pick<Conversation, 'run' | 'steer' | 'cancel' | 'ending' | 'close'>

type TurnsOptions = {
  readonly agent: Pick<Agent, 'run' | 'steer' | 'cancel' | 'ending' | 'settled'>
  readonly queue: TurnQueue
  /** The limit of simultaneous turns in this process. */
  readonly most: number
  readonly hooks?: Pick<Hooks, 'prompted' | 'interrupt'> | undefined
  /** Called right before a run begins. */
  readonly begins: (start: TurnStart) => void
  /** Keeps the pictures of a message before its run begins. */
  readonly keep?: (pictures: readonly Picture[]) => Promise<readonly PictureRef[]>
}

type RunningTurn = {
  /** Aborted when the turn is cancelled. */
  readonly waiting: AbortController
  /** Resolved when the run has begun, or will not begin. */
  readonly started: PromiseWithResolvers<void>
  by?: string
  begun: boolean
  leave?: () => void
  /** The ending of a turn that ended before its run began. */
  ending?: Ending
}

export function createTurns({ agent, queue, most, hooks, begins, keep = async () => [] }: TurnsOptions): Turns {
  const state: { closed: boolean; latest?: RunningTurn; running: boolean } = { closed: false, running: false }

  function cancel(by = 'user'): void {
    const turn = state.running ? state.latest : undefined
    if (!turn) return
    turn.by = by
    turn.waiting.abort()
    if (turn.begun) agent.cancel(by)
    hooks?.interrupt()
  }

  const run: Turns['run'] = async function* (message, signal, continues, start = {}) {
    if (state.closed) return yield* refusal('closed', 'this conversation is closed; open it again')
    if (state.running) return yield* refusal('busy', 'a turn is under way in this conversation; wait for it or cancel it')
    const turn: RunningTurn = { waiting: new AbortController(), started: Promise.withResolvers(), begun: false }
    Object.assign(state, { latest: turn, running: true })
    const stop = () => cancel('program')
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    using _end = atEnd(() => {
      signal?.removeEventListener('abort', stop)
      over(turn)
    })
    const leave = await queue.enter(most, turn.waiting.signal)
    if (!leave) return yield* givenUp(turn)
    turn.leave = leave
    const { text, pictures } = typeof message === 'string' ? { text: message } : message
    const asked = continues ? undefined : await hooks?.prompted(text)
    if (turn.waiting.signal.aborted) return yield* givenUp(turn)
    if (asked && 'refused' in asked) return yield* givenUp(turn, asked.refused)
    const kept = pictures?.length ? await keep(pictures) : undefined
    begins(start)
    yield* events(turn, agent.run(asked?.message ?? text, continues, start.allowedTools, kept))
  }

  async function* events(turn: RunningTurn, running: AsyncGenerator<AgentEvent>): AsyncGenerator<AgentEvent> {
    for await (const event of running) {
      // A cancel that came before the run could be cancelled.
      if (!turn.begun && turn.by !== undefined) agent.cancel(turn.by)
      turn.begun = true
      turn.started.resolve()
      yield event
    }
  }

  function over(turn: RunningTurn): void {
    turn.started.resolve()
    turn.leave?.()
    if (state.latest === turn) state.running = false
  }

  return {
    run,
    /** A message that a hook refuses is left to the next turn, which says why. */
    async steer(text) {
      const turn = state.running ? state.latest : undefined
      if (!turn?.begun) return false
      const asked = await hooks?.prompted(text)
      return asked && 'refused' in asked ? false : await agent.steer(asked?.message ?? text)
    },
    cancel,
    ending() {
      const turn = state.latest
      if (turn?.ending) return turn.ending
      return turn?.begun ? agent.ending() : undefined
    },
    async close() {
      state.closed = true
      const turn = state.running ? state.latest : undefined
      if (!turn) return
      cancel('close')
      await turn.started.promise
      // This also ends a turn whose events have no reader any more.
      if (turn.begun) await agent.settled()
      over(turn)
    },
  }
}

/** Lets a person make the first calls of a turn: they stand in the place of the model's reply, and take the same path as its calls. */
export function withPersonCalls(provider: Provider): Pick<TurnsOptions, 'begins'> & { readonly provider: Provider } {
  const state: { start: TurnStart } = { start: {} }
  async function* reply(calls: NonNullable<TurnStart['calls']>): AsyncGenerator<ModelChunk> {
    const { operatorReply } = await import('../toolset/direct-call.ts')
    const id = () => createId('call', crypto.getRandomValues(new Uint8Array(10)))
    yield operatorReply(calls.map((call) => ({ type: 'call', id: id(), ...call, meta: { by: 'person' } })))
  }
  const chat: Provider['chat'] = (request, signal) => {
    const { calls = [], asksNoModel } = state.start
    state.start = { asksNoModel }
    return calls.length > 0 || asksNoModel ? reply(calls) : provider.chat(request, signal)
  }
  return { begins: (start) => void Object.assign(state, { start }), provider: { ...provider, chat } }
}

function* refusal(code: 'busy' | 'closed', message: string): Generator<AgentEvent> {
  yield { type: 'error', code, message, recoverable: true }
  yield { type: 'done', stopReason: 'error' }
}

/** Ends a turn that was cancelled while it waited, or that a hook refused: it asked nothing, so the journal has no entry. */
function* givenUp(turn: RunningTurn, ending?: Ending): Generator<AgentEvent> {
  turn.ending = ending ?? { stop: 'cancelled', code: 'cancelled', message: `cancelled by ${turn.by ?? 'user'} before it began` }
  const { code, message, stop } = turn.ending
  yield { type: 'error', code, message, recoverable: true }
  yield { type: 'done', stopReason: stop }
}

export type TurnQueue = ReturnType<typeof createTurnQueue>

type WaitingTurn = { readonly limit: number; readonly go: () => void }

/** Limits how many turns run at once in a process: turns beyond the limit wait and start in order of arrival. */
export function createTurnQueue() {
  const waiting = new Set<WaitingTurn>()
  const state = { running: 0 }

  /** Starts waiting turns from the front; no turn overtakes another. */
  function next(): void {
    for (const each of waiting) {
      if (state.running >= each.limit) return
      begin()
      waiting.delete(each)
      each.go()
    }
  }

  function begin(): void {
    state.running += 1
  }

  function endOnce(): () => void {
    const turn = { over: false }
    return () => {
      if (turn.over) return
      turn.over = true
      state.running -= 1
      next()
    }
  }

  return {
    depth: () => ({ running: state.running, waiting: waiting.size }),
    /** @returns a function that ends the turn; undefined when the signal was aborted while the turn waited */
    async enter(limit: number, signal: AbortSignal): Promise<(() => void) | undefined> {
      if (signal.aborted) return undefined
      if (waiting.size === 0 && state.running < limit) {
        begin()
        return endOnce()
      }
      const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>()
      const mine: WaitingTurn = { limit, go: () => resolve(endOnce()) }
      waiting.add(mine)
      const giveUp = () => {
        if (!waiting.delete(mine)) return
        resolve(undefined)
        next()
      }
      signal.addEventListener('abort', giveUp, { once: true })
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
  }
}
