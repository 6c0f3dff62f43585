/** Answers a repeated request with the answer of the first one, so that a client that lost it may send the request again. */

import type { Context } from 'hono'
import type { KeyedRequest, ReplyState, ReplyStore, StoredReply } from './contract.ts'
import { HttpError } from './http-error.ts'

/** Takes the events of a stream, also those that the client no longer reads. */
export type Recorder = { frame(text: string): void; end(): void }

const keyPattern = /^[\x21-\x7e]{1,255}$/
/** The longest answer that is stored. */
const maxKept = 4_194_304

export type Idempotency = {
  /** Runs `next` for a first request. @returns the answer of an earlier one. @throws HttpError 400, 409, 422 */
  answer(context: Context, asked: IdempotentRequest): Promise<Response | undefined>
}

export type IdempotentRequest = {
  readonly owner: string
  readonly digest: () => string
  readonly record: (recorder: Recorder) => void
  readonly next: () => Promise<void>
}

type RunningRequest = { readonly digest: string; readonly reply: Promise<StoredReply | undefined> }

export function createIdempotency(store: ReplyStore): Idempotency {
  /** The requests that this process is answering. */
  const running = new Map<string, RunningRequest>()

  async function whenAnswered(name: KeyedRequest, { digest, reply }: RunningRequest): Promise<Response> {
    if (digest !== name.digest) throw keyReused(name.key)
    const first = await reply
    if (!first) throw inProgress()
    return replay(first)
  }

  /** Registers the request before the first await, so that a second one with the same key finds it. */
  function enter(name: KeyedRequest) {
    const { promise, resolve } = Promise.withResolvers<StoredReply | undefined>()
    running.set(runningKey(name), { digest: name.digest, reply: promise })
    return (reply: StoredReply | undefined) => {
      running.delete(runningKey(name))
      resolve(reply)
    }
  }

  return {
    async answer(context, { owner, digest, record, next }) {
      const key = keyOf(context.req)
      if (key === undefined) return void (await next())
      const name = { owner, key, digest: digest() }
      const before = running.get(runningKey(name))
      if (before) return whenAnswered(name, before)
      const leave = enter(name)
      const begun = await orLeave(() => store.begin(name), leave)
      if (begun.state !== 'new') return earlier(name, begun, leave)
      const finish = async (reply: StoredReply | undefined) => {
        if (reply && reply.body.length <= maxKept) await orLeave(() => store.finish(name, reply), leave)
        else if (!reply) await orLeave(() => store.forget(name), leave)
        leave(reply)
      }
      const frames: string[] = []
      record({ frame: (text) => void frames.push(text), end: () => void finish(streamReply(frames)) })
      try {
        await next()
      } catch (error) {
        await finish(undefined)
        throw error
      }
      const { res } = context
      const type = res.headers.get('content-type') ?? ''
      if (context.error || refused(res.status)) await finish(undefined)
      else if (!type.startsWith('text/event-stream')) await finish({ status: res.status, type, body: await res.clone().text() })
      return undefined
    },
  }
}

/** @returns undefined when the request has none. @throws HttpError 400 for a key in another form */
export function keyOf(asked: { header(name: string): string | undefined }): string | undefined {
  const key = asked.header('idempotency-key')
  if (key !== undefined && !keyPattern.test(key)) throw new HttpError(400, 'bad_key', 'Idempotency-Key: 1 to 255 visible ASCII characters')
  return key
}

async function orLeave<T>(work: () => T | Promise<T>, leave: (reply: undefined) => void): Promise<T> {
  try {
    return await work()
  } catch (error) {
    leave(undefined)
    throw error
  }
}

function earlier({ key }: KeyedRequest, begun: ReplyState, leave: (reply: StoredReply | undefined) => void): Response {
  leave(begun.state === 'done' ? begun.reply : undefined)
  if (begun.state === 'done') return replay(begun.reply)
  if (begun.state === 'other') throw keyReused(key)
  if (begun.state !== 'lost') throw inProgress()
  throw new HttpError(
    409,
    'interrupted',
    'the server stopped while it answered this request: look how far it came, then send what is missing with a new Idempotency-Key',
  )
}

function keyReused(key: string): HttpError {
  return new HttpError(422, 'key_reused', `the Idempotency-Key ${JSON.stringify(key)} was sent with another request before; use a new one`)
}

function inProgress(): HttpError {
  return new HttpError(409, 'in_progress', 'this request is being answered; ask again later', { 'retry-after': '2' })
}

/** Tells whether the client can send the request again, because nothing happened. */
function refused(status: number): boolean {
  return (status >= 400 && status < 500) || status === 503
}

function streamReply(frames: readonly string[]): StoredReply {
  return { status: 200, type: 'text/event-stream; charset=utf-8', body: frames.join('') }
}

function runningKey({ owner, key }: KeyedRequest): string {
  return `${owner}\n${key}`
}

function replay({ status, type, body }: StoredReply): Response {
  return new Response(body, { status, headers: { 'content-type': type, 'idempotency-replayed': 'true' } })
}
