/** The wording of the tool-loop contract: a model is told of every refusal that the tool was not permitted, whoever runs the loop. */

import type { Message, Provider } from '../../runtime/port.ts'

/** `Denied by RULE: why` and `Denied: RULE: why` become `Tool not permitted: RULE: why`. Any other text stays. */
export function notPermitted(text: string): string {
  return text.replace(/^Denied(?: by|:) /, 'Tool not permitted: ')
}

/** The same provider, asked with the results in those words. */
export function withContractRefusals(provider: Provider): Provider {
  return { ...provider, chat: (request, signal) => provider.chat({ ...request, messages: request.messages.map(plainRefusal) }, signal) }
}

function plainRefusal(message: Message): Message {
  return message.role === 'tool' && message.isError ? { ...message, content: notPermitted(message.content) } : message
}
