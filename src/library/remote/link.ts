/**
 * Connects an agent with the executable as its child: it starts and ends the child, matches lines with turns and requests, and answers the
 * calls of the child.
 */

import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import { within } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { parseJson } from '../../kit/json.ts'
import { createLineSplitter } from '../../kit/lines.ts'
import { createQueue, createWaiters } from '../../kit/queue.ts'
import type { ModelPiece } from '../../providers/model-call.ts'
import type { AgentEvent, Ending, Proposal } from '../../runtime/event.ts'
import { type AgentOptions, executeTool, failedTurn } from '../agent/agent-api.ts'
import { findExecutable } from '../executable.ts'
import { isServerLine, protocolVersion, refuseProtocol, type ServerLine } from '../stdio/server-line.ts'

export type RemoteOptions = AgentOptions & {
  /** The path of the braidclaw program; default: see findExecutable. */
  readonly executable?: string
}

/** So many events wait for a slow consumer; then the child waits. */
const window = 64
const graceMs = 5_000

/** Holds what the child told of its agent. */
type Known = {
  ending?: Ending | undefined
  conversation?: string | undefined
  run?: string | undefined
  readonly gates: Map<string, Proposal>
}

export type Link = ReturnType<typeof createLink>

/** `hello` is the client's part of it, and `start` starts the program. */
export function createLink(options: RemoteOptions, hello: object, start: StartProgram) {
  const known: Known = { gates: new Map() }
  const state: { child?: LineChild | undefined; last: number; turns: number } = { last: 0, turns: 0 }
  /** Takes the lines with an id; a text says why the child has ended. */
  const open = new Map<string, (line: ServerLine | string) => void>()
  const send = (line: object) => state.child?.send(line)
  const calls = createOwnCalls(options, send)

  function begin(take: (line: ServerLine | string) => void): string {
    const id = String(state.last++)
    open.set(id, take)
    return id
  }

  function running(): void {
    if (state.child) return
    const onEnd = (why: string) => (state.child === child ? fail(why) : undefined)
    const child: LineChild = talkTo(start(known.conversation), { onLine, onEnd, log: options.log })
    state.child = child
    void child.send({ hello: { protocol: protocolVersion, client: 'the braidclaw library', credits: window, ...hello } })
  }

  /** Ends all turns and requests, and the child if it runs. */
  function fail(why: string): void {
    const { child } = state
    state.child = undefined
    child?.kill()
    calls.abortAll()
    known.gates.clear()
    for (const take of [...open.values()]) take(why)
  }

  function onLine(line: ServerLine): void {
    const { id, hello: greeting, call, model, abort, error } = line
    const refusal = greeting && refuseProtocol(greeting.protocol, `braidclaw ${greeting.version}`, 'this library')
    if (refusal !== undefined) fail(refusal)
    else if (call) void calls.call(call)
    else if (model) void calls.model(model)
    else if (abort !== undefined) calls.abort(abort)
    else if (id !== undefined) open.get(id)?.(line)
    // An answer may come too late; everything else that was not understood would be waited for.
    else if (error && error.code !== 'unknown_call') fail(error.message)
  }

  return {
    known,
    open,
    send,
    begin,
    running,
    /** Counts the turns: while one runs, the child keeps this process alive. */
    count(by: 1 | -1): void {
      state.turns += by
      state.child?.hold(state.turns > 0)
    },
    /** @returns undefined when no child runs, or it died before it answered. @throws Error with the child's reason for refusing */
    ask: async (line: object) =>
      await new Promise<ServerLine | undefined>((resolve, reject) => {
        if (state.child === undefined) return resolve(undefined)
        const id = begin((answer) => {
          open.delete(id)
          if (typeof answer === 'string') resolve(undefined)
          else if (answer.error) reject(new Error(answer.error.message))
          else resolve(answer)
        })
        void send({ id, ...line })
      }),
    end: async () => state.child?.end(graceMs),
  }
}

/** Yields the events of one turn. A consumer that leaves early cancels it. */
export async function* runTurn(link: Link, prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent> {
  const { known, open, send } = link
  const queue = createQueue<AgentEvent>(Number.POSITIVE_INFINITY)
  const over = (last: readonly AgentEvent[]) => {
    open.delete(id)
    for (const event of last) void queue.push(event)
    queue.close()
  }
  const id = link.begin((line) => {
    if (typeof line === 'string') known.ending = { stop: 'error', code: 'error', message: line }
    if (typeof line === 'string') return over(failedTurn('child_ended', line))
    if (line.error) return over(failedTurn(line.error.code, line.error.message))
    if (!line.event) return
    learn(known, line.event, line)
    if (line.event.type === 'done') over([line.event])
    else void queue.push(line.event)
  })
  const stop = () => void send({ id, cancel: true })
  async function* events() {
    for await (const event of queue.items()) {
      void send({ credit: 1 })
      yield event
    }
  }
  const rest = async () => {
    for await (const _ of events());
  }
  link.count(1)
  try {
    link.running()
    void send({ id, prompt })
  } catch (error) {
    over(failedTurn('not_started', errorText(error)))
  }
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  try {
    yield* events()
  } finally {
    signal?.removeEventListener('abort', stop)
    if (open.has(id)) stop()
    await within(graceMs, rest())
    open.delete(id)
    link.count(-1)
  }
}

function learn(known: Known, event: AgentEvent, { proposal, ending, conversation }: ServerLine): void {
  if (event.type === 'init') Object.assign(known, { run: event.runId, ending: undefined, conversation })
  if (event.type === 'approval_gate' && proposal) known.gates.set(event.gateId, proposal)
  if (event.type !== 'done') return
  known.ending = ending ?? known.ending
  known.gates.clear()
}

/** Answers the calls of the child: the program's own tools and its own model. After an abort nothing more is sent. */
function createOwnCalls({ tools = [], modelCall, cwd = process.cwd() }: AgentOptions, send: LineChild['send']) {
  const open = new Map<string, AbortController>()

  async function answer(id: string, answers: (signal: AbortSignal) => AsyncGenerator<object>): Promise<void> {
    const controller = new AbortController()
    open.set(id, controller)
    for await (const line of answers(controller.signal)) {
      if (controller.signal.aborted) break
      await send(line)
    }
    if (open.get(id) === controller) open.delete(id)
  }

  const abort = (id: string) => {
    open.get(id)?.abort()
    open.delete(id)
  }

  return {
    call: ({ id, name, input }: NonNullable<ServerLine['call']>) =>
      answer(id, async function* (signal) {
        try {
          const tool = tools.find((each) => each.name === name)
          yield { result: { id, output: tool && (await executeTool(tool, input, { signal, cwd })) } }
        } catch (error) {
          yield { result: { id, error: errorText(error) } }
        }
      }),
    model: ({ id, system = '', messages, tools: offered }: NonNullable<ServerLine['model']>) =>
      answer(id, async function* (signal) {
        try {
          for await (const piece of modelCall?.(messages, offered, signal, { system }) ?? []) {
            if (piece.type === 'done') break
            yield { piece: pieceOf(id, piece) }
          }
          yield { piece: { id, type: 'done' } }
        } catch (error) {
          yield { piece: { id, type: 'error', content: errorText(error) } }
        }
      }),
    abort,
    abortAll: () => [...open.keys()].forEach(abort),
  }
}

/** Leaves out what the program added: the other end refuses members that it does not know. */
function pieceOf(id: string, piece: Exclude<ModelPiece, { type: 'done' }>): object {
  if (piece.type === 'tool_use') return { id, type: 'tool_use', name: piece.name, input: piece.input, callId: piece.id }
  return { id, type: piece.type, content: piece.content }
}

/** A running program with its streams. */
export type RunningProgram = {
  readonly stdin: Pick<Writable, 'writable' | 'write' | 'end' | 'on'>
  /** Called once. */
  listen(on: { output(piece: Uint8Array, from: 'stdout' | 'stderr'): void; end(how: string): void }): void
  kill(): void
  /** Hold this process alive. */
  readonly handles: readonly object[]
}

/** `resumed`: the conversation to continue, when the program starts again. @throws Error when there is no program */
export type StartProgram = (resumed: string | undefined) => RunningProgram

/** Returns the flags of `braidclaw stdio` for an agent. */
export function argumentsOf({ cwd, model, permissionMode, maxTurns, conversation = 'new' }: AgentOptions): string[] {
  const flags = { workspace: cwd, model, autonomy: permissionMode, 'max-turns': maxTurns }
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]))
  const resume = conversation === 'new' ? [] : conversation === 'latest' ? ['--continue'] : ['--resume', conversation]
  return ['stdio', '--quiet', ...given, ...resume]
}

/** Starts the executable with all rights of this process; `more` are further flags. */
export function startExecutable(options: RemoteOptions, more: readonly string[] = []): StartProgram {
  const { cwd = process.cwd(), env = process.env, home } = options
  return (resumed) => {
    const words = argumentsOf({ ...options, cwd, conversation: resumed ?? options.conversation })
    const child = spawn(findExecutable(options), [...words, ...more], {
      cwd,
      env: { PATH: process.env.PATH, ...env, ...(home === undefined ? {} : { BRAIDCLAW_HOME: home }) },
    })
    const { stdin, stdout, stderr } = child
    return {
      stdin,
      listen({ output, end }) {
        for (const [from, stream] of [['stdout', stdout] as const, ['stderr', stderr] as const])
          stream.on('data', (piece: Uint8Array) => output(piece, from))
        child.on('error', (error) => end(`could not be started (${error.message})`))
        child.on('close', (code, signal) => end(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`))
      },
      kill: () => void child.kill('SIGKILL'),
      handles: [child, stdin, stdout, stderr],
    }
  }
}

type ChildEvents = Pick<AgentOptions, 'log'> & {
  onLine(line: ServerLine): void
  /** Called once, when the child has ended and its last line was read; `why` is a sentence. */
  onEnd(why: string): void
}

/** A model request holds a whole conversation. In bytes. */
const longestLine = 256 * 1024 * 1024

type LineChild = ReturnType<typeof talkTo>

function talkTo({ stdin, listen, kill, handles }: RunningProgram, { onLine, onEnd, log: tell }: ChildEvents) {
  const state = { said: '', ended: false, held: true }
  const [lines, log] = [createLineSplitter(longestLine), createLineSplitter(65_536)]
  const ended = new Promise<void>((resolve) => {
    listen({
      output(piece, from) {
        if (from === 'stdout') {
          for (const value of lines.push(piece).map(({ text }) => parseJson(text))) if (isServerLine(value)) onLine(value)
          return
        }
        for (const { text } of log.push(piece)) {
          state.said = text
          tell?.(`${text}\n`)
        }
      },
      end(how) {
        if (state.ended) return
        state.ended = true
        onEnd(`the braidclaw process ${how}${state.said === '' ? '' : `: ${state.said}`}`)
        resolve()
      },
    })
  })
  // A child that has ended is reported by `end`.
  stdin.on('error', () => {})
  const room = createWaiters()
  stdin.on('drain', room.wake)
  void ended.then(room.wake)

  /** @returns a promise to wait for while the child reads slowly */
  function send(line: object): Promise<void> | undefined {
    return state.ended || !stdin.writable || stdin.write(`${JSON.stringify(line)}\n`) ? undefined : room.sleep()
  }

  /** While it is held, the child keeps this process alive. In Bun a second ref needs a second unref. */
  function hold(isHeld: boolean): void {
    if (state.held === isHeld) return
    state.held = isHeld
    for (const handle of handles) {
      // Pipes of a child are sockets, whose types do not say that they can be held.
      const method: unknown = Reflect.get(handle, isHeld ? 'ref' : 'unref')
      if (typeof method === 'function') Reflect.apply(method, handle, [])
    }
  }

  return {
    send,
    hold,
    /** Asks the child to end, and kills it after `graceMs`. Resolves when it has ended. */
    async end(graceMs: number): Promise<void> {
      hold(true)
      void send({ close: true })
      stdin.end()
      const late = setTimeout(kill, graceMs)
      await ended
      clearTimeout(late)
    },
    kill,
  }
}
