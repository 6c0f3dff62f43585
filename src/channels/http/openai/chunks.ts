/** Streams a turn as the chunks of OpenAI's API. */

import type { EventStream } from '../../../http/event-stream.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { TurnDone } from '../turns/talks.ts'
import { createPieces, failureOf, finishOf, type Named, noteOf, openAiFields, usageOf } from './answers.ts'

export type Chunks = {
  readonly show: (event: AgentEvent, stream: EventStream) => void
  readonly ended: (done: TurnDone, stream: EventStream) => void
}

/** The first chunk names the role; the last ones say why the text ends, and what it used when the client asked for that. */
export function chunksOf(named: Named, wantsUsage: boolean): Chunks {
  const pieces = createPieces()
  const state: { role?: string } = { role: 'assistant' }

  function put(stream: EventStream, delta: object, finish: string | null = null): void {
    const choices = [{ index: 0, delta: { ...state, ...delta }, finish_reason: finish, logprobs: null }]
    delete state.role
    stream.send({ data: { ...named, object: 'chat.completion.chunk', choices } })
  }

  function finish(done: TurnDone, stream: EventStream): void {
    const note = noteOf(done)
    if (note !== '') put(stream, { content: note })
    put(stream, {}, finishOf(done))
    if (wantsUsage) stream.send({ data: { ...named, object: 'chat.completion.chunk', choices: [], usage: usageOf(done) } })
  }

  return {
    show(event, stream) {
      const content = pieces(event)
      if (content !== '') put(stream, { content })
    },
    ended(done, stream) {
      const failure = failureOf(done.ending)
      if (failure) {
        const { code, message, fields } = failure
        stream.send({ data: { error: { code, message, ...openAiFields(failure), ...fields } } })
      } else finish(done, stream)
      stream.send({ data: '[DONE]' })
    },
  }
}
