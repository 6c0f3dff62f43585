/** Passes the answer of a model on to the runner, reads its usage on the way, and ends both sides when the run may not continue. */

import { quiet } from '../../http/http-error.ts'
import { parseJson } from '../../kit/json.ts'
import { cut, visible, wordsOfPage } from '../../kit/text.ts'
import { type EventBlock, readBlocks } from './stream-blocks.ts'
import { clientHeaders, maxDocumentBytes, readText, type Vendor } from './upstream-call.ts'
import { errorAnswer, type Failure, failureOf, fieldsOf, type RequestFacts, type Tally, type Wire } from './wires.ts'

export type Relay = {
  readonly wire: Wire
  readonly facts: RequestFacts
  readonly tally: Tally
  /** Aborts, with the reason, when the run may not continue or the client disconnects. */
  readonly stopped: AbortSignal
  /** Called before the client has the end of the answer; only the first call counts. */
  readonly settle: () => Promise<void>
  readonly redact: (text: string) => string
  /** Logs for the operator why the connection to the vendor broke. */
  readonly broke: (error: unknown) => void
  readonly headers: Readonly<Record<string, string>>
}

/** Passes on a document unchanged, unless it is a web page. One that is not an object of JSON counts by its bytes. */
export async function relayDocument({ wire, tally, settle, redact }: Relay, upstream: Response): Promise<Response> {
  const { text, isWhole, bytes } = await readText(upstream, maxDocumentBytes)
  if (!isWhole) throw new RangeError(`the model answered with more than ${maxDocumentBytes} bytes`)
  const value = fieldsOf(parseJson(text))
  if (Object.keys(value).length === 0) tally.bytes = bytes
  wire.note(tally, value)
  tally.ended = true
  await settle()
  return apiAnswer(wire.vendor, upstream, redact(text))
}

/**
 * Returns an answer of the vendor as it is; what something in between says (a web page, or a refusal that is not JSON) becomes an error in
 * the form of the vendor, with the first words of the text.
 */
export function apiAnswer(vendor: Vendor, { ok, status, headers }: Response, text: string): Response {
  const passed = clientHeaders(headers)
  if (ok ? !/^\s*</.test(text) : parseJson(text) !== undefined) return new Response(text, { status, headers: { ...quiet, ...passed } })
  const words = wordsOfPage(text)
  const message = `the ${vendor} API, or a server in front of it, answered ${status}${words === '' ? ' without a text' : `: ${cut(visible(words), 300)}`}`
  const answer = errorAnswer(vendor, { status: ok ? 502 : status, code: 'upstream_answer', message })
  answer.headers.delete('x-should-retry')
  for (const [name, value] of Object.entries(passed)) if (name !== 'content-type') answer.headers.set(name, value)
  return answer
}

/** Passes on a stream event by event, no faster than the client reads. */
export function relayStream(relay: Relay, upstream: Response): Response {
  const blocks = readBlocks()
  const reader = upstream.body?.getReader()
  /** Settles before it passes on the last event, because the client may act on that. */
  async function passed(block: EventBlock): Promise<string | Uint8Array | undefined> {
    const value = fieldsOf(parseJson(block.data))
    relay.wire.note(relay.tally, value)
    if (relay.wire.isLast(block.data, value)) {
      relay.tally.ended = true
      await relay.settle()
    }
    if (relay.wire.isExtra(value, relay.facts)) return undefined
    const text = relay.redact(block.data)
    return text === block.data ? block.bytes : relay.redact(new TextDecoder().decode(block.bytes))
  }

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const piece = reader ? await reader.read() : { done: true as const, value: undefined }
    const blocksOfPiece = piece.done ? [blocks.rest()] : blocks.take(piece.value)
    const out: Uint8Array[] = []
    for (const block of blocksOfPiece) {
      const bytes = block && (await passed(block))
      if (bytes !== undefined) out.push(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes)
    }
    if (out.length > 0) controller.enqueue(Buffer.concat(out))
    if (!piece.done) return out.length > 0 ? undefined : await pull(controller)
    await relay.settle()
    controller.close()
  }

  async function fail(controller: ReadableStreamDefaultController<Uint8Array>, error: unknown): Promise<void> {
    await relay.settle()
    const failure = failureFor(relay, error)
    controller.enqueue(new TextEncoder().encode(relay.redact(relay.wire.stopped(failure))))
    controller.close()
  }

  const body = new ReadableStream<Uint8Array>({
    start() {
      // Without a client that reads, no other call settles.
      relay.stopped.addEventListener('abort', () => void relay.settle(), { once: true })
    },
    pull: (controller) => pull(controller).catch((error) => fail(controller, error)),
    cancel: relay.settle,
  })
  return new Response(body, { status: upstream.status, headers: { ...quiet, ...relay.headers, 'x-accel-buffering': 'no' } })
}

/** Describes the reason of an abort: a refusal, or whatever ended the connection of the client. */
function stopFailure(reason: unknown): Failure {
  try {
    return failureOf(reason)
  } catch {
    return { status: 499, code: 'cancelled', message: 'the call was stopped' }
  }
}

/** Names only our own limits: other errors name addresses that only the operator may see. */
function failureFor({ stopped, broke }: Relay, error: unknown): Failure {
  if (stopped.aborted) return stopFailure(stopped.reason)
  broke(error)
  const why = error instanceof RangeError ? error.message : 'the log of the control plane says why'
  return { status: 502, code: 'upstream_broke', message: `the connection to the model broke: ${why}` }
}

export function brokenResponse(relay: Relay, error: unknown): Response {
  return errorAnswer(relay.wire.vendor, failureFor(relay, error))
}
