/** Builds the conversation that the model sees from selected events. */

import type { RunEvent } from './event.ts'
import type { Message } from './port.ts'

/**
 * Returns the messages that this event adds: a prompt, a reply with its parts unchanged, or the results of a round in the order of its
 * calls.
 */
export function messagesOf(event: RunEvent): Message[] {
  switch (event.type) {
    case 'run.start':
      return [{ role: 'user', content: event.prompt }]
    case 'model.done':
    case 'judged':
      return [{ role: 'assistant', parts: event.parts }]
    case 'observe':
      return event.results.map(({ call, ok, text }) => ({ role: 'tool', callId: call.id, name: call.name, content: text, isError: !ok }))
    case 'retry':
      return [{ role: 'user', content: event.evidence }]
    default:
      return []
  }
}
