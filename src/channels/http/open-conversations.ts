/** Runs the turns that requests ask for: many conversations at once, one turn at a time in each, in order of arrival. */

import type { Conversation, ConversationChoice, Past } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import type { ApiEnv } from '../../http/api.ts'
import { credentialEnd, unauthorized } from '../../http/callers.ts'
import { type EventStream, openEventStream } from '../../http/event-stream.ts'
import { HttpError } from '../../http/http-error.ts'
import { atEnd } from '../../kit/errors.ts'
import type { AgentEvent, Ending } from '../../runtime/event.ts'
import type { Picture } from '../../runtime/port.ts'
import type { ChannelHost } from '../inbox/channel-api.ts'
import { refusedBy, takeTurn } from '../take-turn.ts'
import type { Caller, Holders } from './access.ts'

export type TurnRequest = {
  readonly caller: Caller
  /** The request that it answers: its connection, and its credential. */
  readonly env: Pick<ApiEnv<Caller>['Bindings'], 'connection' | 'isInForce'>
  /** Tells whether a turn whose client disconnects continues or is cancelled. */
  readonly onDisconnect: 'continue' | 'cancel'
  /** Absent: a new conversation. */
  readonly conversationId?: string
  readonly message: string
  readonly pictures?: readonly Picture[] | undefined
  /** The earlier messages, as the client sends them: the conversation is then for this turn alone. */
  readonly past?: Past
  /** Called once the turn has its conversation, before its first event. @returns a signal that aborts when nobody reads its events */
  readonly begun?: (conversation: Conversation) => AbortSignal
  readonly show: (event: AgentEvent) => void
  /** At an open question the turn waits for an answer from elsewhere, or it ends and the question stays open. */
  readonly onApproval: 'wait' | 'end'
}

export type TurnDone = { readonly conversation: Conversation; readonly ending: Ending }

export type OpenConversations = {
  /** @throws HttpError 401 once the credential of the request has ended, 404, 429, 503 */
  turn(request: TurnRequest): Promise<TurnDone>
  sees(caller: Caller, conversationId: string): boolean
  /** @throws HttpError 404 */
  assertSees(caller: Caller, conversationId: string): void
  /** Returns the run that is under way in the conversation. */
  runningIn(conversationId: string): string | undefined
  /** Aborted when the server begins to stop. */
  readonly stopping: AbortSignal
  /** Tells whether the run is under way here, in a conversation that the caller may see. */
  seesRun(caller: Caller, runId: string): boolean
  /** Refuses new turns, gives running ones this long, then cancels them; resolves when all have ended. */
  close(finishMs: number): Promise<void>
}

/** Says in the record who cancelled a turn. */
const tokenEnd = 'end of the token'
/** How many conversations may stay open between turns. */
const mostOpen = 1_000

export function createOpenConversations(host: ChannelHost, holders: Pick<Holders, 'byId'>): OpenConversations {
  const open = new Map<string, Promise<Conversation>>()
  const running = new Set<Conversation>()
  const turns = new Set<Promise<unknown>>()
  const queue = createTurnQueue()
  const state = { closed: false }

  async function conversationFor({ caller, conversationId, past }: TurnRequest): Promise<Conversation> {
    if (conversationId === undefined) return begin(caller, past)
    if (!isVisible(caller, conversationId)) throw noConversation(conversationId)
    const key = keyOf(caller, conversationId)
    const found = open.get(key) ?? openFor(caller, { kind: 'resume', id: conversationId })
    keep(key, found)
    return found
  }

  async function begin(caller: Caller, past: Past | undefined): Promise<Conversation> {
    const opening = openFor(caller, { kind: 'new' }, past)
    const conversation = await opening
    if (caller.access.memory === 'own') host.tokens.own(conversation.id, caller.id)
    if (!past) keep(keyOf(caller, conversation.id), opening)
    return conversation
  }

  function openFor({ access }: Caller, which: ConversationChoice, past?: Past): Promise<Conversation> {
    return host.conversation(which, { channel: access.channel, access, past: past && (() => past) })
  }

  /** Closes the least recently used conversations when too many are open. */
  function keep(key: string, opening: Promise<Conversation>): void {
    if (!open.delete(key)) opening.catch(() => open.delete(key))
    open.set(key, opening)
    for (const [oldest, each] of open) {
      if (open.size <= mostOpen) return
      open.delete(oldest)
      void each.then((conversation) => (running.has(conversation) ? undefined : conversation.close()))
    }
  }

  function isVisible({ id, access }: Caller, conversationId: string): boolean {
    const isThere = host.hasConversation(conversationId) || open.has(keyOf({ id, access }, conversationId))
    return isThere && (access.memory === 'all' || host.tokens.ownerOf(conversationId) === id)
  }

  async function turn(request: TurnRequest, cancelling: AbortController): Promise<TurnDone> {
    if (state.closed) throw stopping()
    const { signal } = cancelling
    const conversation = await conversationFor(request)
    const leave = await queue.enter(conversation.id, signal)
    if (!leave) throw new HttpError(499, 'gone', 'the client has gone')
    running.add(conversation)
    const cancel = () => conversation.cancel(signal.reason === tokenEnd ? tokenEnd : 'client')
    signal.addEventListener('abort', cancel, { once: true })
    using _end = atEnd(() => {
      signal.removeEventListener('abort', cancel)
      running.delete(conversation)
      leave()
      if (request.past) void conversation.close()
    })
    if (state.closed) throw stopping()
    // It may have ended while the turn waited.
    if (!isInForce(request.caller)) throw tokenEnded()
    const unread = request.begun?.(conversation)
    if (request.onDisconnect === 'cancel') unread?.addEventListener('abort', () => cancelling.abort(), { once: true })
    const onGate = request.onApproval === 'wait' ? async () => {} : refusedBy(conversation)
    const { message: prompt, pictures, show } = request
    const ending = await takeTurn({ conversation, prompt, pictures, show, onGate, isStopped: () => signal.aborted })
    return { conversation, ending }
  }

  /** Cancels the turn when its client leaves and wants that, and when its token ends. @throws HttpError 401 when the credential ends */
  async function assertInForce({ caller, env, onDisconnect }: TurnRequest, cancelling: AbortController, over: AbortSignal): Promise<void> {
    const isCancelled = onDisconnect === 'cancel'
    if (isCancelled) env.connection.disconnected.addEventListener('abort', () => cancelling.abort(), { once: true })
    if (!(await credentialEnd(env.isInForce, over))) return
    const isLogOut = isInForce(caller)
    if (isCancelled || !isLogOut) cancelling.abort(isLogOut ? undefined : tokenEnd)
    throw isLogOut ? unauthorized('the session has ended; log in again') : tokenEnded()
  }

  /** Tells whether the token is in force; a session may have ended before its token. */
  function isInForce({ id, digest }: Caller): boolean {
    return holders.byId(id)?.digest === digest
  }

  return {
    turn(request) {
      const [cancelling, over] = [new AbortController(), new AbortController()]
      request.env.connection.stay()
      const done = turn(request, cancelling)
      const inForce = assertInForce(request, cancelling, over.signal)
      const end = () => over.abort()
      const settled = done.then(end, end)
      turns.add(settled)
      void settled.then(() => turns.delete(settled))
      return Promise.race([done, inForce.then(() => done)])
    },
    sees: isVisible,
    assertSees(caller, id) {
      if (!isVisible(caller, id)) throw noConversation(id)
    },
    runningIn: (id) => [...running].find((each) => each.id === id)?.runId(),
    stopping: host.stopping,
    seesRun: (caller, runId) => [...running].some((each) => each.runId() === runId && isVisible(caller, each.id)),
    async close(finishMs) {
      state.closed = true
      const late = setTimeout(() => {
        for (const conversation of running) conversation.cancel('SIGTERM')
      }, finishMs)
      await Promise.all(turns)
      clearTimeout(late)
    },
  }
}

function keyOf({ id, access }: Pick<Caller, 'id' | 'access'>, conversationId: string): string {
  return JSON.stringify([id, access, conversationId])
}

function noConversation(id: string): HttpError {
  return new HttpError(404, 'no_conversation', `the conversation ${JSON.stringify(id.slice(0, 100))} does not exist`)
}

function tokenEnded(): HttpError {
  return unauthorized('this token is not in force any more; its turn was cancelled')
}

function stopping(): HttpError {
  return new HttpError(503, 'stopping', 'the server is being stopped; send it again later', { 'retry-after': '2' })
}

/** Returns the status of a failure before a turn began. */
export function httpErrorOf(error: unknown): HttpError | undefined {
  if (!(error instanceof FailureError)) return undefined
  const status = { usage: 400, provider: 502, timeout: 504, budget: 429, limit: 429, estop: 409, denied: 403, checks_failed: 422 }
  const known: { readonly [code: string]: number } = status
  return new HttpError(known[error.code] ?? 500, error.code, error.message)
}

/** Returns the further fields of an error under /v1/: clients of OpenAI's API expect more than a code and a message. */
export function errorFields(path: string, error: HttpError): object {
  return path.startsWith('/v1/') ? openAiFields(error) : {}
}

/** Returns the fields that errors have in OpenAI's API besides code and message. */
export function openAiFields({ status }: HttpError): object {
  const types: { readonly [status: number]: string } = { 401: 'authentication_error', 403: 'permission_error', 429: 'rate_limit_error' }
  return { type: types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'), param: null }
}

type TurnQueue = {
  /**
   * Resolves with a function that ends the turn; undefined when the signal was aborted while it waited. @throws HttpError 429 when too many
   * wait
   */
  enter(key: string, signal: AbortSignal): Promise<(() => void) | undefined>
}

/** Lets one turn at a time into each conversation; the others wait in order of arrival, and a few at most. */
function createTurnQueue(most = 16): TurnQueue {
  const lines = new Map<string, Set<() => void>>()

  function leaveOf(key: string): () => void {
    return () => {
      const waiting = lines.get(key)
      const [next] = waiting ?? []
      if (!waiting || !next) return void lines.delete(key)
      waiting.delete(next)
      next()
    }
  }

  return {
    async enter(key, signal) {
      if (signal.aborted) return undefined
      const waiting = lines.get(key)
      if (!waiting) {
        lines.set(key, new Set())
        return leaveOf(key)
      }
      if (waiting.size >= most)
        throw new HttpError(429, 'conversation_busy', `${most} messages wait in this conversation already; send it again later`, {
          'retry-after': '5',
        })
      const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>()
      const go = () => resolve(leaveOf(key))
      waiting.add(go)
      const giveUp = () => {
        if (waiting.delete(go)) resolve(undefined)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
  }
}

export type StreamedTurn = Omit<TurnRequest, 'show' | 'begun'> & {
  readonly show: (event: AgentEvent, stream: EventStream) => void
  /** Sends what comes after the last event. */
  readonly ended?: (done: TurnDone, stream: EventStream) => void
  /** Sends why no more events come. */
  readonly failed: (why: HttpError, stream: EventStream) => void
}

/** Sends the events of a turn as they are. */
export const plainEvents: Pick<StreamedTurn, 'show' | 'failed'> = {
  show: (event, stream) => stream.send({ data: event }),
  failed: ({ code, message }, stream) => stream.send({ data: { type: 'error', code, message, recoverable: false } satisfies AgentEvent }),
}

/**
 * Runs one turn for a client that reads its events as they happen. Resolves when the turn begins, so that a refused one is answered with its
 * status. @throws as OpenConversations.turn
 */
export async function streamTurn(
  openConversations: OpenConversations,
  { show, ended, failed, ...request }: StreamedTurn,
): Promise<Response> {
  const opened = Promise.withResolvers<EventStream>()
  const state: { stream?: EventStream } = {}
  const turn = openConversations.turn({
    ...request,
    begun(conversation) {
      const stream = openEventStream({ connection: request.env.connection, headers: { 'x-conversation-id': conversation.id } })
      state.stream = stream
      opened.resolve(stream)
      return stream.disconnected
    },
    show: (event) => state.stream && show(event, state.stream),
  })
  void turn.then(
    (done) => {
      if (state.stream) ended?.(done, state.stream)
      state.stream?.end()
    },
    (error: unknown) => {
      opened.reject(error)
      const { stream } = state
      delete state.stream
      const why = error instanceof HttpError ? error : httpErrorOf(error)
      if (stream && why) failed(why, stream)
      stream?.end()
    },
  )
  return (await opened.promise).response
}
