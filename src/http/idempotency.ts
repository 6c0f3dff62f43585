/** Answers a repeated request with the answer of the first one, so that a client that lost it may send the request again. */

import type { Context } from 'hono'
import { HttpError } from './http-error.ts'

export type Reply = { readonly status: number; readonly type: string; readonly body: string }

/** `digest`: of method, path and body. */
export type RequestName = { readonly owner: string; readonly key: string; readonly digest: string }

/** `elsewhere`: another process is answering it; `lost`: the process that was answering it has died. */
export type Begun = { readonly state: 'new' | 'other' | 'elsewhere' | 'lost' | 'here' } | { readonly state: 'done'; readonly reply: Reply }

export type ReplyStore = {
  /** Notes that the request is being answered, on disk when it returns; or says what became of the first one. */
  begin(name: RequestName): Begun
  finish(name: RequestName, reply: Reply): void
  /** The request was refused before anything happened. */
  forget(name: RequestName): void
}

/** Takes the events of a stream, also those that the client no longer reads. */
export type Recorder = { frame(text: string): void; end(): void }

const keyPattern = /^[\x21-\x7e]{1,255}$/
/** A longer answer is not kept. */
const maxKept = 4_194_304

export type Idempotency = {
  /** Runs `next` for a first request. @returns the answer of an earlier one. @throws HttpError 400, 409, 422 */
  answer(context: Context, asked: Asked): Promise<Response | undefined>
}

export type Asked = {
  readonly owner: string
  readonly digest: () => string
  readonly record: (recorder: Recorder) => void
  readonly next: () => Promise<void>
}

export function createIdempotency(store: ReplyStore): Idempotency {
  /** The requests that this process is answering. */
  const running = new Map<string, Promise<Reply | undefined>>()

  async function earlier(name: RequestName, begun: Begun): Promise<Response> {
    if (begun.state === 'done') return replay(begun.reply)
    if (begun.state === 'other')
      throw new HttpError(
        422,
        'key_reused',
        `the Idempotency-Key ${JSON.stringify(name.key)} was sent with another request before; use a new one`,
      )
    if (begun.state === 'lost')
      throw new HttpError(
        409,
        'interrupted',
        'the server stopped while it answered this request: look how far it came, then send what is missing with a new Idempotency-Key',
      )
    const reply = await running.get(runningKey(name))
    if (reply) return replay(reply)
    throw new HttpError(409, 'in_progress', 'this request is being answered; ask again later', { 'retry-after': '2' })
  }

  return {
    async answer(context, { owner, digest, record, next }) {
      const key = context.req.header('idempotency-key')
      if (key === undefined) return void (await next())
      if (!keyPattern.test(key)) throw new HttpError(400, 'bad_key', 'Idempotency-Key: 1 to 255 visible ASCII characters')
      const name = { owner, key, digest: digest() }
      const begun = store.begin(name)
      // Nothing may be awaited until it is among the running ones: the next request with this key looks there.
      if (begun.state !== 'new') return earlier(name, begun)
      const done = Promise.withResolvers<Reply | undefined>()
      const finish = (reply: Reply | undefined) => {
        running.delete(runningKey(name))
        if (reply && reply.body.length <= maxKept) store.finish(name, reply)
        else if (!reply) store.forget(name)
        done.resolve(reply)
      }
      running.set(runningKey(name), done.promise)
      const frames: string[] = []
      record({ frame: (text) => void frames.push(text), end: () => finish(streamReply(frames)) })
      try {
        await next()
      } catch (error) {
        finish(undefined)
        throw error
      }
      const { res } = context
      const type = res.headers.get('content-type') ?? ''
      if (context.error || refused(res.status)) finish(undefined)
      else if (!type.startsWith('text/event-stream')) finish({ status: res.status, type, body: await res.clone().text() })
      return undefined
    },
  }
}

/** The status of a request that can be sent again, because nothing happened. */
function refused(status: number): boolean {
  return (status >= 400 && status < 500) || status === 503
}

function streamReply(frames: readonly string[]): Reply {
  return { status: 200, type: 'text/event-stream; charset=utf-8', body: frames.join('') }
}

function runningKey({ owner, key }: RequestName): string {
  return `${owner}\n${key}`
}

function replay({ status, type, body }: Reply): Response {
  return new Response(body, { status, headers: { 'content-type': type, 'idempotency-replayed': 'true' } })
}
