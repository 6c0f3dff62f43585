/** Passes the answer of a model on to the runner, reads its usage on the way, and ends both sides when the run may not continue. */

import { quiet } from '../../http/http-error.ts'
import { parseJson } from '../../kit/json.ts'
import { cut, visible, wordsOfPage } from '../../kit/text.ts'
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

type EventBlock = {
  /** The event as it was sent, with the empty line that ends it. */
  readonly bytes: Uint8Array
  /** Its data; lines are joined by a line break. */
  readonly data: string
}

/** A longer event is an error. */
const maxBlockBytes = 33_554_432

/** Joins a long event once, when its end arrives, so that the cost is linear in its length. */
export function readBlocks() {
  const state = { pieces: [] as Uint8Array[], bytes: 0, tail: new Uint8Array() }

  function keep(piece: Uint8Array): void {
    if (piece.length > 0) state.pieces.push(piece)
    state.bytes += piece.length
    state.tail = Buffer.concat([state.tail, piece.subarray(-tailBytes)]).subarray(-tailBytes)
    if (state.bytes > maxBlockBytes) throw new RangeError(`the model sent an event of more than ${maxBlockBytes} bytes`)
  }

  function drain(last: Uint8Array): Uint8Array {
    const whole = Buffer.concat([...state.pieces, last])
    Object.assign(state, { pieces: [], bytes: 0, tail: new Uint8Array() })
    return whole
  }

  return {
    /** @throws RangeError for an event of more than 32 MiB */
    take(piece: Uint8Array): readonly EventBlock[] {
      const blocks: EventBlock[] = []
      const hasEnd = endOfBlock(Buffer.concat([state.tail, piece])) >= 0
      let left = hasEnd ? drain(piece) : piece
      for (let end = hasEnd ? endOfBlock(left) : -1; end >= 0; end = endOfBlock(left)) {
        blocks.push(blockOf(left.subarray(0, end)))
        left = left.subarray(end)
      }
      keep(left)
      return blocks
    },
    /** Returns what follows the last empty line. */
    rest: () => (state.bytes === 0 ? undefined : blockOf(drain(new Uint8Array()))),
  }
}

/** A line break that began in an earlier piece has at most this many bytes. */
const tailBytes = 3
const [LF, CR] = [10, 13]

/** @returns the byte after the first empty line, or -1; lines end with LF, CRLF or CR */
function endOfBlock(bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length; at += 1) {
    const line = lineEnd(bytes, at)
    const empty = line === 0 ? 0 : lineEnd(bytes, at + line)
    if (empty > 0) return at + line + empty
    // The second half of a CRLF is not a line of its own.
    if (line === 2) at += 1
  }
  return -1
}

/** Returns how many bytes end a line here; 0 when none do. */
function lineEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] === LF) return 1
  if (bytes[at] !== CR) return 0
  return bytes[at + 1] === LF ? 2 : 1
}

function blockOf(bytes: Uint8Array): EventBlock {
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\r|\n/)
  return { bytes, data: lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(line[5] === ' ' ? 6 : 5)] : [])).join('\n') }
}
