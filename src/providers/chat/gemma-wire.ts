/** Asks FunctionGemma or Gemma 4 at /completions in its own text, for a server that does not read the model's calls itself. */

import type { ChatRequest, Message } from '../../runtime/port.ts'
import type { WireConfig } from '../wire/provider-settings.ts'
import type { ReplyBlock } from '../wire/reply-parts.ts'
import {
  createGemmaParser,
  developerText,
  formatCall,
  formatForFunctionGemma,
  formatFunctionGemmaResponse,
  type GemmaDialect,
  type GemmaPiece,
  gemmaDialects,
  neutralizeControlTokens,
} from './function-gemma.ts'

/** Reads the text of a reply: it emits texts, and with their number the calls that are written in the text. */
export type TextReader = (
  emit: (type: ReplyBlock['type'], text: string) => void,
  call: (value: unknown, at: number) => void,
) => { take(text: string): void; end(): void }

/** Returns what differs from chat.completions. A call that cannot be read is kept as its text, so that the model can be told. */
export function gemmaWire(dialect: GemmaDialect) {
  const { turn, response } = gemmaDialects[dialect]
  /** Servers leave out control tokens unless asked; those that do not know the member ignore it. */
  const body = (request: ChatRequest, config: WireConfig, quirks: ReadonlySet<string>) =>
    JSON.stringify({
      model: request.model || config.model,
      prompt: promptOf(request, dialect),
      max_tokens: request.maxOutputTokens ?? config.maxOutputTokens,
      temperature: request.temperature ?? config.temperature,
      stop: [turn[1], response[0]],
      skip_special_tokens: quirks.has('skip_special_tokens') ? undefined : false,
      stream: config.stream !== false,
      stream_options: config.stream === false || quirks.has('stream_options') ? undefined : { include_usage: true },
    })
  const readText: TextReader = (emit, call) => {
    const parser = createGemmaParser(dialect)
    let count = 0
    const pass = (pieces: readonly GemmaPiece[]) => {
      for (const piece of pieces) {
        if (piece.type !== 'call') emit(piece.type, piece.text)
        else call(piece.args ? { function: { name: piece.name, arguments: JSON.stringify(piece.args) } } : piece.raw, count++)
      }
    }
    return { take: (text) => pass(parser.push(text)), end: () => pass(parser.end()) }
  }
  return { body, readText }
}

/** The results of calls stand in the turn in which the model called, and the model goes on in it. */
function promptOf({ systemPrompt, messages, tools }: ChatRequest, dialect: GemmaDialect): string {
  const { turn, instructor } = gemmaDialects[dialect]
  const declared = tools.length === 0 ? '' : developerText + formatForFunctionGemma(tools, dialect)
  const instructions = [neutralizeControlTokens(systemPrompt).trim(), declared].filter(Boolean).join('\n')
  const prompt = instructions === '' ? [] : [`${turn[0]}${instructor}\n${instructions}${turn[1]}\n`]
  let isOpen = false
  for (const message of messages) {
    if (message.role !== 'user') prompt.push(isOpen ? '' : `${turn[0]}model\n`, spoken(message, dialect))
    else prompt.push(isOpen ? `${turn[1]}\n` : '', `${turn[0]}user\n${neutralizeControlTokens(message.content)}${turn[1]}\n`)
    isOpen = message.role !== 'user'
  }
  return prompt.join('') + (isOpen ? '' : `${turn[0]}model\n`)
}

function spoken(message: Exclude<Message, { role: 'user' }>, dialect: GemmaDialect): string {
  if (message.role === 'tool')
    return formatFunctionGemmaResponse(message.name, { [message.isError ? 'error' : 'value']: message.content }, dialect)
  const written = message.parts.map((part) => {
    if (part.type === 'call') return formatCall(part.name, part.input, dialect)
    return part.type === 'text' ? neutralizeControlTokens(part.text) : ''
  })
  return written.join('')
}
