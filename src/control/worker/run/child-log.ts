/** Keeps the output of one run: capped, in a file for the pane, and sent to the control plane piece by piece as the connection allows. */

import { sleep, within } from '../../../kit/abort.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { createRedactor, createStreamRedactor } from '../../../security/redaction/redact.ts'
import type { RotatingLog } from '../../../service/rotating-log.ts'
import { countRefusals } from '../../contract/plane-refusal.ts'
import type { RunPort } from '../worker-port.ts'

export const mostLogBytes = 8 * 1024 * 1024
const pieceBytes = 256 * 1024
const pauses = { firstMs: 250, longestMs: 5_000 } as const

export type RunLogOptions = {
  readonly runId: string
  readonly port: Pick<RunPort, 'appendLog'>
  /** The token of the run, which is hidden: a reader of the log must not get the rights of the run. Everything that looks like a key is hidden too. */
  readonly secret: string
  /** The log of the agent, which a pane follows. */
  readonly agentLog: Pick<RotatingLog, 'write'>
}

export type RunLog = {
  /** Takes bytes as the child wrote them; what is not UTF-8 becomes U+FFFD, control characters stay. */
  take(chunk: Uint8Array, from: 'stdout' | 'stderr'): void
  write(text: string): void
  /** The text without the token of the run. */
  safe(text: string): string
  /**
   * Sends the rest; called again, it tries once more, perhaps with another token. Nothing may be written after it.
   * @returns false when not everything arrived within `ms`
   */
  close(ms: number): Promise<boolean>
  /** Stops sending. */
  abandon(): void
  summary(): { readonly bytes: number; readonly digest: string; readonly truncated: boolean }
}

const note = '\n[the log ends here: it has more than 8 MiB]\n'

export function openRunLog({ runId, port, agentLog, secret }: RunLogOptions): RunLog {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const redactor = createRedactor()
  redactor.register(secret, 'token of the run')
  const safe = { stdout: createStreamRedactor(redactor), stderr: createStreamRedactor(redactor) }
  const abandoned = new AbortController()
  const hasher = new Bun.CryptoHasher('sha256')
  const state = { bytes: 0, sent: 0, waiting: [] as Buffer[], truncated: false, closing: false }
  const wake: { go: () => void } = { go: () => {} }
  const untilClosed = Promise.withResolvers<void>()

  function keep(bytes: Buffer): void {
    state.bytes += bytes.length
    state.waiting.push(bytes)
    hasher.update(bytes)
    agentLog.write(bytes.toString())
    wake.go()
  }

  function add(text: string): void {
    if (text === '' || state.truncated) return
    const bytes = Buffer.from(text)
    const room = mostLogBytes - Buffer.byteLength(note) - state.bytes
    state.truncated = bytes.length > room
    keep(bytes.length <= room ? bytes : Buffer.from(wholeCharacters(bytes, Math.max(0, room)) + note))
  }

  /** Returns the next piece, which ends between two characters, because it is sent as text. */
  function nextPiece(): string {
    const all = state.waiting.length === 1 ? (state.waiting[0] ?? Buffer.alloc(0)) : Buffer.concat(state.waiting)
    state.waiting = [all]
    return wholeCharacters(all, pieceBytes)
  }

  function arrived(bytes: number): void {
    const rest = state.waiting[0]?.subarray(bytes)
    state.waiting = [...(rest && rest.length > 0 ? [rest] : []), ...state.waiting.slice(1)]
    state.sent += bytes
  }

  async function send(): Promise<void> {
    let wait: number = pauses.firstMs
    const refusals = countRefusals()
    while (!abandoned.signal.aborted) {
      if (state.sent === state.bytes) {
        if (state.closing) return
        await news()
        continue
      }
      const piece = nextPiece()
      try {
        await port.appendLog(runId, state.sent, piece)
        arrived(Buffer.byteLength(piece))
        wait = pauses.firstMs
        refusals.reset()
      } catch (error) {
        if (refusals.isFinal(error)) {
          if (state.closing) return
          // The token of the run is not valid any more; `close` tries once more, perhaps with another one.
          await untilClosed.promise
          refusals.reset()
          continue
        }
        await sleep(wait, abandoned.signal)
        wait = Math.min(pauses.longestMs, wait * 2)
      }
    }
  }

  function news(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    wake.go = resolve
    if (abandoned.signal.aborted) resolve()
    return promise
  }

  abandoned.signal.addEventListener('abort', () => wake.go(), { once: true })
  const sending = { now: send() }
  return {
    take(chunk, from) {
      if (!state.truncated) add(safe[from].push(decoders[from].decode(chunk, { stream: true })))
    },
    write: (text) => add(redactor.text(text)),
    safe: redactor.text,
    async close(ms) {
      for (const from of ['stdout', 'stderr'] as const) add(safe[from].push(decoders[from].decode()) + safe[from].flush())
      const isAgain = state.closing
      state.closing = true
      untilClosed.resolve()
      wake.go()
      if (isAgain) sending.now = sending.now.then(send)
      await within(ms, sending.now)
      return state.sent === state.bytes
    },
    abandon() {
      abandoned.abort()
      untilClosed.resolve()
    },
    summary: () => ({ bytes: state.bytes, digest: hasher.copy().digest('hex') || sha256(''), truncated: state.truncated }),
  }
}

/** @returns at most `most` bytes, without the half character at the end */
function wholeCharacters(bytes: Buffer, most: number): string {
  if (bytes.length <= most) return bytes.toString()
  let end = most
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
