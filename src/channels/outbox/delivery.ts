/** Delivers the answers of a channel: each stays on disk until it is delivered, so that neither an outage nor a restart loses it. */

import { errorText } from '../../kit/errors.ts'
import { thisProcess } from '../../memory/journal/process-owner.ts'
import type { ChannelStore } from '../../memory/recovery/channel-store.ts'
import type { AnswerContext } from '../inbox/channel-api.ts'
import type { RetryOptions, Sender } from './send-pieces.ts'

export type Delivery = {
  /** Has it on disk when it returns. Resolves when it is delivered, or when it has to be tried again later. Never rejects. */
  deliver(outgoing: AnswerContext & { readonly address: string; readonly text: string; readonly replyTo?: string }): Promise<void>
  /** Sends what waits, also what a dead process has left. */
  resume(): void
}

type DeliveryOptions = RetryOptions & { readonly channel: string; readonly store: ChannelStore; readonly send: Sender['send'] }

/** `tried` resolves after the next attempt; aborting `nap` ends the rest before it. */
type Line = { tried: PromiseWithResolvers<void>; nap: AbortController }

/** The rests between attempts to deliver to an address: 5, 10, 20 s … and from then on 5 minutes. A new answer ends a rest. */
const [restMs, longestRestMs] = [5_000, 300_000]

/** Stands for an empty text, which no service takes. */
const noText = '(no answer)'

export function createDelivery(options: DeliveryOptions): Delivery {
  const { channel, store, send, log, signal, sleep } = options
  const owner = thisProcess()
  /** The addresses that something waits for. */
  const lines = new Map<string, Line>()

  async function work(address: string, line: Line): Promise<void> {
    try {
      for (let failures = 0; !signal.aborted; ) {
        const oldest = store.oldest(channel, address)
        // At once: a later answer begins a line of its own.
        if (!oldest) return void end(address, line)
        const isDone = await deliverOne(oldest, options)
        if (isDone) failures = 0
        else {
          line.tried.resolve()
          Object.assign(line, { tried: Promise.withResolvers(), nap: new AbortController() })
          await sleep(Math.min(longestRestMs, restMs * 2 ** failures++), AbortSignal.any([signal, line.nap.signal]))
        }
      }
    } catch (error) {
      log('error', 'answers not delivered', { to: address, why: errorText(error) })
    }
    end(address, line)
  }

  function end(address: string, line: Line): void {
    if (lines.get(address) === line) lines.delete(address)
    line.tried.resolve()
  }

  function wake(address: string): Promise<void> {
    const found = lines.get(address)
    const line = found ?? { tried: Promise.withResolvers<void>(), nap: new AbortController() }
    lines.set(address, line)
    line.nap.abort()
    if (!found) void work(address, line)
    return line.tried.promise
  }

  return {
    async deliver({ address, text, conversationId = '', replyTo, closed }) {
      try {
        const isQuestion = closed !== undefined
        const seq = store.keep({ channel, address, text, conversationId, replyTo: replyTo ?? null, isQuestion, owner })
        void closed
          ?.then(() => store.forget(seq))
          .catch((error: unknown) => log('warn', 'question not withdrawn', { why: errorText(error) }))
      } catch (error) {
        log('error', 'answer not kept', { to: address, why: errorText(error) })
        const sent = await send(address, text || noText, { replyTo })
        if (!sent.ok) log('error', 'answer not delivered', { to: address, why: sent.message })
      }
      await wake(address)
    },
    resume() {
      try {
        for (const address of new Set([...lines.keys(), ...store.adopt(channel, owner)])) void wake(address)
      } catch (error) {
        log('error', 'answers of an earlier start not delivered', { channel, why: errorText(error) })
      }
    },
  }
}

type Oldest = NonNullable<ReturnType<ChannelStore['oldest']>>

/** Delivers an answer, or gives it up. @returns false when it has to be tried again */
async function deliverOne(oldest: Oldest, { store, send, log, signal }: DeliveryOptions): Promise<boolean> {
  const { seq, address, text, replyTo, at, sent: skip } = oldest
  const key = `${at.toString(36)}-${seq.toString(36)}`
  const progress = (pieces: number) => store.setProgress(seq, { sent: pieces })
  const sent = await send(address, text || noText, { replyTo: replyTo ?? undefined, key, skip, progress })
  if (sent.ok) return store.forget(seq)
  if (signal.aborted) return false
  store.setProgress(seq, { why: sent.message, failed: sent.isFinal })
  log(sent.isFinal ? 'error' : 'warn', sent.isFinal ? 'answer not delivered' : 'answer waits', { to: address, why: sent.message })
  return sent.isFinal === true
}
