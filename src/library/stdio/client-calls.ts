/** Calls the tools and the model of a client over its lines, and matches its answers. It runs on Node too. */

import { createQueue } from '../../kit/queue.ts'
import type { ModelCall, ModelPiece } from '../../providers/model-call.ts'
import type { RuleAsJson } from '../agent/agent-api.ts'
import type { OwnTool } from '../agent/own-tool.ts'
import { type ClientLine, type Hello, longestLine, type Piece } from './protocol.ts'
import type { ServerLine } from './server-line.ts'

/** The tools, rules and model that a client brings with its `hello`. */
export type ClientParts = {
  readonly tools: readonly OwnTool[]
  readonly rules: readonly RuleAsJson[]
  readonly modelCall: ModelCall | undefined
}

export type ClientCalls = {
  partsOf(hello: Hello): ClientParts
  /** @returns whether something waited for this answer */
  take(answer: Pick<ClientLine, 'result' | 'piece'>): boolean
}

/** `ended` aborts every open call, because the client has gone. */
export function createClientCalls(put: (line: ServerLine) => void, ended: AbortSignal): ClientCalls {
  const open = new Map<string, (answer: Pick<ClientLine, 'result' | 'piece'>) => boolean>()
  const state = { last: 0 }

  /** Sends a call. The client learns of an abort. */
  function begin(name: 'call' | 'model', about: object, signal: AbortSignal, take: typeof open extends Map<string, infer T> ? T : never) {
    state.last += 1
    const id = `${name}-${state.last}`
    open.set(id, take)
    const abort = () => {
      // Answers that are on their way meanwhile count as nothing.
      open.set(id, () => true)
      put({ abort: id })
    }
    signal.addEventListener('abort', abort, { once: true })
    put({ [name]: { id, ...about } })
    return () => {
      if (open.get(id) === take) open.delete(id)
      signal.removeEventListener('abort', abort)
    }
  }

  const callTool = (name: string, input: object, given: AbortSignal) =>
    new Promise<unknown>((resolve, reject) => {
      const signal = AbortSignal.any([given, ended])
      const done = begin('call', { name, input }, signal, ({ result }) => {
        if (!result) return false
        done()
        if (result.error === undefined) resolve(result.output)
        else reject(new Error(result.error))
        return true
      })
      signal.addEventListener('abort', () => reject(new Error(ended.aborted ? 'the client has gone' : 'cancelled')), { once: true })
    })

  const modelCall: ModelCall = async function* (messages, tools, given) {
    const signal = AbortSignal.any([given, ended])
    const pieces = createQueue<Piece>(Number.POSITIVE_INFINITY)
    const reply = { size: 0 }
    const done = begin('model', { messages, tools }, signal, ({ piece }) => {
      if (!piece) return false
      reply.size += JSON.stringify(piece).length
      void pieces.push(piece)
      // A closed queue takes nothing more.
      if (reply.size > longestLine) pieces.close()
      return true
    })
    signal.addEventListener('abort', pieces.close, { once: true })
    try {
      for await (const piece of pieces.items()) {
        if (piece.type === 'done') return
        yield pieceOf(piece)
      }
      if (!signal.aborted) throw new Error(`the client's model sent more than ${longestLine} characters`)
      throw new Error(ended.aborted ? 'the client has gone' : 'cancelled')
    } finally {
      done()
      signal.removeEventListener('abort', pieces.close)
    }
  }

  return {
    partsOf: ({ tools, threads, modelCall: hasModel }) => ({
      tools: tools.map((tool) => ({ ...tool, execute: (input, { signal }) => callTool(tool.name, input, signal) })),
      rules: threads,
      modelCall: hasModel ? modelCall : undefined,
    }),
    take: (answer) => open.get(answer.result?.id ?? answer.piece?.id ?? '')?.(answer) ?? false,
  }
}

/** @throws Error for a piece that reports a failure */
function pieceOf(piece: Exclude<Piece, { type: 'done' }>): ModelPiece {
  if (piece.type === 'tool_use')
    return { type: 'tool_use', name: piece.name, input: piece.input, ...(piece.callId ? { id: piece.callId } : {}) }
  if (piece.type === 'error') throw new Error(piece.content || "the client's model failed")
  return { type: piece.type, content: piece.content }
}
