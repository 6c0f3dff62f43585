/** Connects an agent with its child: it starts the child, matches events with turns and answers with requests, and grants credits. */

import { within } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { createQueue } from '../../kit/queue.ts'
import type { AgentEvent, Ending, Proposal } from '../../runtime/event.ts'
import type { AgentOptions } from '../agent/agent-api.ts'
import { executeTool } from '../agent/own-tool.ts'
import { protocolVersion, refuseProtocol, type ServerLine } from '../stdio/server-line.ts'
import { type ChildOptions, type LineChild, startChild } from './child.ts'

/** So many events wait for a slow consumer; then the child waits. */
const window = 64
/** Credits are granted in parts of this size. */
const part = 16
export const graceMs = 5_000

/** Holds what the child told of its agent. */
export type Known = {
  ending?: Ending | undefined
  conversation?: string | undefined
  run?: string | undefined
  readonly gates: Map<string, Proposal>
}

/** `queue` holds the events until the consumer takes them. */
type Turn = { readonly id: string; readonly queue: ReturnType<typeof createQueue<AgentEvent>>; isOver: boolean }

type Send = (line: object) => Promise<void> | undefined

export type LinkOptions = {
  readonly options: AgentOptions
  /** The client's part of the hello. */
  readonly hello: object
  readonly known: Known
  /** Returns how the child is started. @throws Error when there is no program */
  start(): Pick<ChildOptions, 'program' | 'argv' | 'cwd' | 'env'>
}

export function createLink({ options, hello, known, start }: LinkOptions) {
  const state: { child?: LineChild | undefined } = {}
  const send: Send = (line) => state.child?.send(line)
  const calls = createOwnCalls(options, send)
  const turns = createTurns(known, send)
  const requests = createRequests(send)

  function running(): LineChild {
    if (state.child) return state.child
    const onEnd = (why: string) => (state.child === child ? fail(why) : undefined)
    const child: LineChild = startChild({ ...start(), onLine, onEnd, onLog: (line) => options.log?.(`${line}\n`) })
    state.child = child
    void child.send({ hello: { protocol: protocolVersion, client: 'the braidclaw library', credits: window, ...hello } })
    return child
  }

  /** Ends all turns and requests, because there is no child any more. */
  function fail(why: string): void {
    state.child = undefined
    calls.abortAll()
    turns.fail(why)
    requests.fail()
  }

  function refuse(why: string): void {
    const refused = state.child
    fail(why)
    refused?.kill()
  }

  function onLine(line: ServerLine): void {
    const { id, event, hello: greeting, call, model, abort, error } = line
    if (greeting) {
      const refusal = refuseProtocol(greeting.protocol, `braidclaw ${greeting.version}`, 'this library')
      if (refusal !== undefined) refuse(refusal)
    } else if (call) void calls.call(call)
    else if (model) void calls.model(model)
    else if (abort !== undefined) calls.abort(abort)
    else if (id !== undefined && event) turns.onEvent(id, event, line)
    else if (id !== undefined) requests.answer(id, line)
    else if (error?.code === 'protocol' || error?.code === 'hello') refuse(error.message)
  }

  return {
    send,
    end: async () => state.child?.end(graceMs),
    /** @returns undefined when no child runs, or it died before it answered. @throws Error with the child's reason for refusing */
    ask: async (line: object) => (state.child === undefined ? undefined : requests.ask(line)),
    async *run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent> {
      const turn = turns.begin()
      const stop = () => void send({ id: turn.id, cancel: true })
      try {
        running().hold(true)
        void send({ id: turn.id, prompt })
      } catch (error) {
        over(turn, failed('not_started', errorText(error)))
      }
      signal?.addEventListener('abort', stop, { once: true })
      if (signal?.aborted) stop()
      try {
        yield* turns.take(turn)
      } finally {
        signal?.removeEventListener('abort', stop)
        if (await turns.leave(turn)) state.child?.hold(false)
      }
    },
  }
}

/** Matches requests with their answers. */
function createRequests(send: Send) {
  const open = new Map<string, (reply: ServerLine | undefined) => void>()
  const state = { last: 0 }
  return {
    async ask(line: object): Promise<ServerLine | undefined> {
      state.last += 1
      const id = `request-${state.last}`
      const reply = new Promise<ServerLine | undefined>((resolve) => open.set(id, resolve))
      void send({ id, ...line })
      const answer = await reply
      if (answer?.error) throw new Error(answer.error.message)
      return answer
    },
    answer(id: string, line: ServerLine): void {
      open.get(id)?.(line)
      open.delete(id)
    },
    fail(): void {
      for (const answer of open.values()) answer(undefined)
      open.clear()
    },
  }
}

/** Keeps the events of turns until they are taken, and grants credits for them. */
function createTurns(known: Known, send: Send) {
  const turns = new Map<string, Turn>()
  const state = { consumed: 0, last: 0 }

  async function* take({ queue }: Turn): AsyncGenerator<AgentEvent> {
    for await (const event of queue.items()) {
      state.consumed += 1
      if (state.consumed >= part) {
        void send({ credit: state.consumed })
        state.consumed = 0
      }
      yield event
    }
  }

  return {
    take,
    begin(): Turn {
      state.last += 1
      const id = `turn-${state.last}`
      const turn: Turn = { id, queue: createQueue(Number.POSITIVE_INFINITY), isOver: false }
      turns.set(id, turn)
      return turn
    },
    onEvent(id: string, event: AgentEvent, { proposal, ending, conversation }: ServerLine): void {
      if (event.type === 'init') Object.assign(known, { run: event.runId, ending: undefined, conversation })
      if (event.type === 'approval_gate' && proposal) known.gates.set(event.gateId, proposal)
      const turn = turns.get(id)
      if (event.type !== 'done') return void turn?.queue.push(event)
      known.ending = ending ?? known.ending
      known.gates.clear()
      if (turn) over(turn, [event])
    },
    /** Cancels a turn that its consumer left early, and waits for its end. @returns whether no turn is left */
    async leave(turn: Turn): Promise<boolean> {
      const rest = async () => {
        for await (const _ of take(turn));
      }
      if (!turn.isOver) void send({ id: turn.id, cancel: true })
      await within(graceMs, rest())
      turns.delete(turn.id)
      return turns.size === 0
    },
    fail(why: string): void {
      state.consumed = 0
      known.gates.clear()
      for (const turn of turns.values()) {
        if (turn.isOver) continue
        known.ending = { stop: 'error', code: 'error', message: why }
        over(turn, failed('child_ended', why))
      }
    },
  }
}

/** Answers the calls of the child: the program's own tools and its own model. */
function createOwnCalls({ tools = [], modelCall, cwd = process.cwd() }: AgentOptions, send: Send) {
  const open = new Map<string, AbortController>()

  /** Runs `work`; after an abort nothing that it sends is sent. */
  async function during(id: string, work: (signal: AbortSignal, answer: Send) => Promise<void>): Promise<void> {
    const controller = new AbortController()
    open.set(id, controller)
    await work(controller.signal, (line) => (controller.signal.aborted ? undefined : send(line)))
    if (open.get(id) === controller) open.delete(id)
  }

  const abort = (id: string) => {
    open.get(id)?.abort()
    open.delete(id)
  }

  return {
    call: ({ id, name, input }: NonNullable<ServerLine['call']>) =>
      during(id, async (signal, answer) => {
        const tool = tools.find((each) => each.name === name)
        const result = async () => {
          if (tool) return { id, output: await executeTool(tool, input, { signal, cwd }) }
          throw new Error(`no tool is called "${name}"`)
        }
        await answer({ result: await result().catch((error: unknown) => ({ id, error: errorText(error) })) })
      }),
    model: ({ id, messages, tools: offered }: NonNullable<ServerLine['model']>) =>
      during(id, async (signal, answer) => {
        const say = (piece: object) => answer({ piece: { id, ...piece } })
        try {
          if (modelCall === undefined) throw new Error('this agent has no modelCall')
          for await (const piece of modelCall(messages, offered, signal)) {
            if (signal.aborted || piece.type === 'done') break
            await say(piece.type === 'tool_use' ? { ...piece, id, callId: piece.id } : piece)
          }
          await say({ type: 'done' })
        } catch (error) {
          await say({ type: 'error', content: errorText(error) })
        }
      }),
    abort,
    abortAll: () => [...open.keys()].forEach(abort),
  }
}

function over(turn: Turn, last: readonly AgentEvent[]): void {
  turn.isOver = true
  for (const event of last) void turn.queue.push(event)
  turn.queue.close()
}

export function failed(code: string, message: string): AgentEvent[] {
  return [
    { type: 'error', code, message, recoverable: false },
    { type: 'done', stopReason: 'error' },
  ]
}
