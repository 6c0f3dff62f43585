/**
 * Serves one agent to one client over lines of JSON: prompts in, events out; after a `hello` also approvals, the client's own tools and model,
 * and credits. It runs on Node too.
 */

import { z } from 'zod'
import { FailureError } from '../../host/failure.ts'
import { within } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { escapeHidden } from '../../kit/escape.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { createLineSplitter, type Line } from '../../kit/lines.ts'
import { createQueue, createWaiters } from '../../kit/queue.ts'
import { didYouMean } from '../../kit/text.ts'
import { fieldsOf } from '../../kit/wire.ts'
import type { ModelCall, ModelPiece } from '../../providers/model-call.ts'
import type { AgentEvent, Ending } from '../../runtime/event.ts'
import { type BraidClaw, failedTurn, type ProgramParts } from '../agent/agent-api.ts'
import { protocolVersion, refuseProtocol, type ServerLine } from './server-line.ts'

/** The members of a writable stream of Node that a session needs. */
export type LineOutput = {
  readonly writable: boolean
  write(text: string): boolean
  on(event: 'close' | 'error' | 'drain', listener: () => void): unknown
}

export type SessionOptions = {
  readonly input: AsyncIterable<Uint8Array | string>
  readonly output: LineOutput
  /** The version of the program. */
  readonly version: string
  /** Stops the session: the running turn is cancelled. */
  readonly signal?: AbortSignal
  /** Called once; without parts the client only sends prompts. @throws Error when the parts cannot be used; the message says why */
  open(client: ProgramParts | undefined): BraidClaw
  /** Called for each question in a session without `hello`, where the client cannot answer. */
  unanswered?(gateId: string, agent: BraidClaw): Promise<void>
}

export type SessionEnd = Ending['code'] | 'usage'

const capabilities = ['prompt', 'approve', 'changes', 'cancel', 'mode', 'tools', 'modelCall', 'threads', 'credits', 'close']
/** More requests without an answer end the session, so that a client that never reads cannot fill the memory. */
const mostOpen = 64
/** How long turns may take to end when the client has gone, in milliseconds. */
export const goodbyeMs = 5_000

/** Waits while the reader is slow; drops the line when the reader has gone. */
type Put = (line: ServerLine | AgentEvent) => Promise<void> | undefined
type Session = SessionOptions & { readonly put: Put; readonly stop: AbortController; readonly lines: AsyncGenerator<Line> }

/** Serves until the input ends, the client goes, or `signal` aborts. @returns how the session ended; a failed turn decides */
export async function serveSession(options: SessionOptions): Promise<SessionEnd> {
  // Node 20 may collect what AbortSignal.any returns.
  const stop = new AbortController()
  const end = () => stop.abort()
  for (const event of ['close', 'error'] as const) options.output.on(event, end)
  options.signal?.addEventListener('abort', end, { once: true })
  if (options.signal?.aborted) end()
  const session = { ...options, stop, put: putter(options.output, stop.signal), lines: linesOf(options.input, stop.signal) }
  const first = await session.lines.next()
  if (first.done) return stop.signal.aborted ? 'cancelled' : 'answered'
  return isHello(first.value) ? framed(session, first.value) : plain(session, first.value)
}

function putter(output: LineOutput, stop: AbortSignal): Put {
  const room = createWaiters()
  output.on('drain', room.wake)
  stop.addEventListener('abort', room.wake, { once: true })
  return (line) => (!output.writable || output.write(`${escapeHidden(JSON.stringify(line))}\n`) || stop.aborted ? undefined : room.sleep())
}

/** Yields lines that are not empty. Ends with the input, or as soon as `stop` aborts. */
async function* linesOf(input: SessionOptions['input'], stop: AbortSignal): AsyncGenerator<Line> {
  const splitter = createLineSplitter(longestLine, 'strict')
  const pieces = input[Symbol.asyncIterator]()
  const state = { wake: () => {} }
  stop.addEventListener('abort', () => state.wake(), { once: true })
  const next = () =>
    new Promise<IteratorResult<Uint8Array | string> | undefined>((resolve, reject) => {
      state.wake = () => resolve(undefined)
      pieces.next().then(resolve, reject)
    })
  while (!stop.aborted) {
    const piece = await next()
    if (piece === undefined) return
    const last = piece.done ? splitter.end() : undefined
    for (const line of piece.done ? (last ? [last] : []) : splitter.push(piece.value)) if (!line.ok || line.text.trim() !== '') yield line
    if (piece.done) return
  }
}

function isHello({ ok, text }: Line): boolean {
  const value = ok ? parseJson(text) : undefined
  return isObject(value) && 'hello' in value
}

const readIn = (line: Line, isFramed: boolean): ReturnType<typeof readLine> => (line.ok ? readLine(line.text, isFramed) : line)

/** Takes the prompts one after the other; the next line is read when the turn before it has ended. */
async function plain({ put, stop: { signal }, lines, open, unanswered }: Session, first: Line): Promise<SessionEnd> {
  const agent = open(undefined)
  const state: { end: SessionEnd } = { end: 'answered' }
  async function take(given: Line): Promise<void> {
    const read = readIn(given, false)
    const prompt = read.ok ? read.line.prompt : undefined
    const turn: { failed?: SessionEnd } = prompt === undefined ? { failed: 'usage' } : {}
    const events =
      prompt === undefined
        ? failedTurn('bad_input', read.ok ? '"hello" is the first line, or none' : read.error, true)
        : eventsOf(agent, prompt, signal, (failed) => Object.assign(turn, { failed }))
    for await (const event of events) {
      await put(event)
      if (event.type === 'approval_gate') await unanswered?.(event.gateId, agent)
    }
    const end = turn.failed ?? agent.ending()?.code ?? 'error'
    if (end !== 'answered') state.end = end
  }
  try {
    await take(first)
    for await (const line of lines) await take(line)
  } finally {
    await agent.close()
  }
  return signal.aborted ? 'cancelled' : state.end
}

/** Yields the events of a turn, also of one that cannot begin. After `done` the agent is ready for the next turn. */
export async function* eventsOf(
  agent: Pick<BraidClaw, 'run'>,
  prompt = '',
  stop?: AbortSignal,
  failed?: (end: SessionEnd) => void,
): AsyncGenerator<AgentEvent> {
  let last: AgentEvent | undefined
  try {
    for await (const event of agent.run(prompt, stop)) {
      if (event.type === 'done') last = event
      else yield event
    }
    if (last !== undefined) yield last
  } catch (error) {
    const code = error instanceof FailureError ? error.code : 'error'
    failed?.(code)
    yield* failedTurn(code, errorText(error), true)
  }
}

/** Speaks with a client that said hello: lines with ids, in both directions. */
async function framed(session: Session, first: Line): Promise<SessionEnd> {
  const { put, lines, version } = session
  const refuse = async (code: string, message: string): Promise<SessionEnd> => {
    await put({ error: { code, message } })
    return 'usage'
  }
  // A client of another version may send members that this one does not know.
  const { protocol, client: name = 'this client' } = fieldsOf(fieldsOf(parseJson(first.text)).hello)
  const refusal = typeof protocol === 'number' ? refuseProtocol(protocol, String(name).slice(0, 80), `braidclaw ${version}`) : undefined
  if (refusal !== undefined) return refuse('protocol', refusal)
  const read = readLine(first.text, true)
  if (!read.ok || !read.line.hello) return refuse('hello', read.ok ? 'the first line has another member' : read.error)
  const { hello } = read.line
  let client: ReturnType<typeof createClient>
  try {
    client = createClient(session, hello)
  } catch (error) {
    return refuse('hello', errorText(error))
  }
  await put({ hello: { protocol: protocolVersion, version, capabilities } })
  for await (const line of lines) if ((await client.take(line)) === 'end') break
  return await client.end()
}

/** @throws Error when what the client brings cannot be used */
function createClient({ put, stop, open: openAgent }: Session, hello: Hello) {
  const calls = createClientCalls(put, stop.signal)
  const agent = openAgent(calls.partsOf(hello))
  const open = new Set<Promise<void>>()
  const turns = new Map<string, AbortController>()
  const state = { credits: hello.credits ?? Number.POSITIVE_INFINITY, hasFlooded: false }
  const granted = createWaiters()
  stop.signal.addEventListener('abort', () => {
    for (const turn of turns.values()) turn.abort()
    granted.wake()
  })

  async function prompt(id: string, text: string): Promise<void> {
    const turn = new AbortController()
    turns.set(id, turn)
    for await (const event of eventsOf(agent, text, turn.signal)) {
      while (state.credits < 1 && !stop.signal.aborted) await granted.sleep()
      state.credits -= 1
      await put({ id, event, ...about(agent, event) })
    }
    turns.delete(id)
  }

  const fail = async (id: string | undefined, code: string, message: string) => put({ id, error: { code, message } })

  /** Does what the line asks for. */
  async function obey({ id = '', ...line }: ClientLine): Promise<void> {
    const { approve, mode } = line
    if (line.prompt !== undefined)
      await (turns.has(id) ? fail(id, 'twice', 'a prompt with this id runs; give each its own') : prompt(id, line.prompt))
    else if (approve) await put({ id, rejected: (await agent.approve(approve.gateId, approve)) ?? null })
    else if (line.changes !== undefined) await put({ id, changes: (await agent.changes(line.changes)) ?? null })
    else if (mode) await put({ id, rejected: (await agent.setMode(mode).catch(errorText)) ?? null })
    else if (line.hello) await fail(id, 'bad_input', '"hello" is the first line, and comes once')
    if (line.cancel) id === '' ? agent.cancel() : turns.get(id)?.abort()
    if (line.credit === undefined) return
    state.credits += line.credit
    granted.wake()
  }

  return {
    async take(given: Line): Promise<'end' | undefined> {
      const read = readIn(given, true)
      if (!read.ok) return void (await fail(read.id, 'bad_input', read.error))
      const { close, result, piece } = read.line
      if (close) return 'end'
      if (result || piece) {
        const id = result?.id ?? piece?.id
        if (!calls.take(read.line)) await fail(undefined, 'unknown_call', `"${id}" is not open: it was answered already or never asked`)
        return undefined
      }
      const work = obey(read.line)
        .catch((error: unknown) => fail(read.line.id, 'failed', errorText(error)))
        .then(() => void open.delete(work))
      open.add(work)
      if (open.size <= mostOpen) return undefined
      state.hasFlooded = true
      void fail(undefined, 'too_many', `more than ${mostOpen} requests wait for their answers; read them first`)
      return 'end'
    },
    /** Cancels the turns, and closes the agent. */
    async end(): Promise<SessionEnd> {
      const end = state.hasFlooded ? 'usage' : turns.size > 0 ? 'cancelled' : 'answered'
      stop.abort()
      await within(goodbyeMs, Promise.all(open))
      await agent.close()
      return end
    },
  }
}

/** Adds what the program of the client can ask its agent synchronously. */
function about(agent: BraidClaw, event: AgentEvent): Pick<ServerLine, 'conversation' | 'proposal' | 'ending'> {
  if (event.type === 'init') return { conversation: agent.conversationId() }
  if (event.type === 'approval_gate') return { proposal: agent.gate(event.gateId) }
  return event.type === 'done' ? { ending: agent.ending() } : {}
}

type Answer = Pick<ClientLine, 'result' | 'piece'>

/** Calls the tools and the model of a client over its lines, and matches its answers. `ended`: the client has gone. */
function createClientCalls(put: Put, ended: AbortSignal) {
  const open = new Map<string, (answer: Answer) => void>()
  const state = { last: 0 }

  /** Sends a call and yields its answers. The client learns of an abort. @throws Error after an abort, and after too much */
  async function* ask(kind: 'call' | 'model', about: object, given: AbortSignal): AsyncGenerator<Answer> {
    state.last += 1
    const id = `${kind}-${state.last}`
    const signal = AbortSignal.any([given, ended])
    const answers = createQueue<Answer>(Number.POSITIVE_INFINITY)
    const reply = { size: 0 }
    open.set(id, (answer) => {
      void answers.push(answer)
      reply.size += JSON.stringify(answer).length
      // A closed queue takes nothing more.
      if (reply.size > longestLine) answers.close()
    })
    const abort = () => {
      // Answers that are on their way meanwhile count as nothing.
      open.set(id, () => {})
      answers.close()
      void put({ abort: id })
    }
    signal.addEventListener('abort', abort, { once: true })
    void put({ [kind]: { id, ...about } })
    try {
      yield* answers.items()
      if (!signal.aborted) throw new Error(`the client's ${kind} sent more than ${longestLine} characters`)
      throw new Error(ended.aborted ? 'the client has gone' : 'cancelled')
    } finally {
      signal.removeEventListener('abort', abort)
      if (!signal.aborted) open.delete(id)
    }
  }

  async function callTool(name: string, input: object, signal: AbortSignal): Promise<unknown> {
    for await (const { result } of ask('call', { name, input }, signal)) {
      if (result?.error !== undefined) throw new Error(result.error)
      return result?.output
    }
  }

  const modelCall: ModelCall = async function* (messages, tools, signal, { system }) {
    for await (const { piece } of ask('model', { system, messages, tools }, signal)) if (piece) yield pieceOf(piece)
  }

  return {
    partsOf: ({ tools, threads, modelCall: hasModel }: Hello): ProgramParts => ({
      tools: tools.map((tool) => ({ ...tool, execute: (input, { signal }) => callTool(tool.name, input, signal) })),
      rules: threads,
      modelCall: hasModel ? modelCall : undefined,
    }),
    /** @returns whether something waited for this answer */
    take({ result, piece }: Answer): boolean {
      const { id } = result ?? piece ?? { id: '' }
      const give = id.startsWith(result ? 'call' : 'model') ? open.get(id) : undefined
      give?.({ result, piece })
      if (result || piece?.type === 'done' || piece?.type === 'error') open.delete(id)
      return give !== undefined
    },
  }
}

/** @throws Error for a piece that reports a failure */
function pieceOf(piece: Piece): ModelPiece {
  if (piece.type === 'error') throw new Error(piece.content || "the client's model failed")
  if (piece.type !== 'tool_use') return piece
  return { type: 'tool_use', name: piece.name, input: piece.input, ...(piece.callId ? { id: piece.callId } : {}) }
}

/** The longest line in bytes, and the longest reply of a client's model in characters. */
const longestLine = 16 * 1024 * 1024

const [text, whole, limit, yes] = [z.string(), z.int().min(0), z.optional(z.int()), z.literal(true)]
const object = z.record(text, z.json())
const risk = z.enum(['low', 'medium', 'high']).default('medium')
const tool = z.strictObject({
  name: text,
  description: text,
  parameters: z.intersection(object, z.object({ type: z.literal('object') })),
  risk,
})

/** The members of a line that are objects. */
const parts = {
  hello: z.strictObject({
    protocol: whole,
    client: z._default(text, 'this client'),
    /** So many events are sent before more are granted; absent: all. */
    credits: z.optional(whole),
    modelCall: z._default(z.boolean(), false),
    tools: z.array(tool).default([]),
    threads: z.array(z.looseObject({ name: text, on: object })).default([]),
  }),
  approve: z.strictObject({ gateId: text, allow: z.boolean(), by: z.optional(text), note: z.optional(text), part: z.optional(text) }),
  mode: z.strictObject({ newMode: z.enum(['structured', 'wiggum']), maxIterations: limit, maxIter: limit, maxSame: limit, until: limit }),
  result: z.strictObject({ id: text, output: z.json().optional(), error: z.optional(text) }),
  piece: z.discriminatedUnion('type', [
    z.strictObject({ id: text, type: z.enum(['text', 'thinking']), content: text }),
    z.strictObject({ id: text, type: z.literal('error'), content: text }),
    z.strictObject({ id: text, type: z.literal('tool_use'), name: text, input: object, callId: z.optional(text) }),
    z.strictObject({ id: text, type: z.literal('done') }),
  ]),
}

/** A line has an id, if it wants an answer, and one other member. */
const clientLine = z.strictObject({ id: text, ...parts, prompt: text, changes: text, cancel: yes, credit: whole, close: yes }).partial()

type ClientLine = z.infer<typeof clientLine>
type Hello = NonNullable<ClientLine['hello']>
type Piece = NonNullable<ClientLine['piece']>

type ReadLine = { readonly ok: true; readonly line: ClientLine } | { readonly ok: false; readonly id?: string; readonly error: string }

const answered = ['prompt', 'approve', 'changes', 'mode']

/** Reads one line. `isFramed`: after a `hello`, where what is answered has an id. */
export function readLine(given: string, isFramed: boolean): ReadLine {
  const value = parseJson(given)
  if (!isObject(value)) return { ok: false, error: `the line is not a JSON object: ${JSON.stringify(given.slice(0, 80))}` }
  const { id, ...others } = value
  const fail = (error: string): ReadLine => ({ ok: false, ...(typeof id === 'string' ? { id } : {}), error })
  const names = Object.keys(others)
  const known = isFramed ? Object.keys(clientLine.shape) : ['hello', 'prompt']
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const advice = unknown in clientLine.shape ? '; begin with a line {"hello": {"protocol": 1}} to use it' : didYouMean(unknown, known)
    return fail(`"${unknown}" is not known here${advice}`)
  }
  if (names.length !== 1)
    return fail(`the line has ${names.length === 0 ? 'no member' : names.join(', ')}; send one of ${known.join(', ')}`)
  if (isFramed && id === undefined && names.some((name) => answered.includes(name))) return fail(`"${names[0]}" has no "id" for its answer`)
  const read = clientLine.safeParse(value)
  return read.success ? { ok: true, line: read.data } : fail(read.error.issues.map(tell).join('; '))
}

function tell(issue: z.core.$ZodIssue): string {
  const place = issue.path.join('.')
  if (issue.code !== 'unrecognized_keys') return `"${place}": ${issue.message}`
  const part = Object.entries(parts).find(([name]) => name === place)?.[1]
  return `"${place}" has the unknown member "${issue.keys[0]}"${didYouMean(issue.keys[0] ?? '', part && 'shape' in part ? Object.keys(part.shape) : [])}`
}
