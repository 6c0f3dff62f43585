/** Rewrites refusals in the wording of the tool-loop contract: the model reads "Tool not permitted" whoever runs the loop. */

import type { Message, Provider } from '../../runtime/port.ts'

/** Replaces the start of `Denied by RULE: why` and `Denied: RULE: why` with `Tool not permitted: `. Other text stays unchanged. */
export function notPermitted(text: string): string {
  return text.replace(/^Denied(?: by|:) /, 'Tool not permitted: ')
}

/** Returns the same provider, which now receives the tool results in that wording. */
export function withContractRefusals(provider: Provider): Provider {
  return { ...provider, chat: (request, signal) => provider.chat({ ...request, messages: request.messages.map(plainRefusal) }, signal) }
}

function plainRefusal(message: Message): Message {
  return message.role === 'tool' && message.isError ? { ...message, content: notPermitted(message.content) } : message
}
