/** Writes and reads how FunctionGemma and Gemma 4 declare, call and answer tools: one grammar, two sets of tokens. It runs on Node too. */

import { isObject, parseJson } from '../../kit/json.ts'
import { soundObject } from '../wire/call-arguments.ts'

export type GemmaDialect = keyof typeof gemmaDialects

/** Each pair begins and ends something; `quote` stands before and after a text; `instructor` is the role that declares the tools. */
export const gemmaDialects = {
  functiongemma: {
    declaration: ['<start_function_declaration>', '<end_function_declaration>'],
    call: ['<start_function_call>', '<end_function_call>'],
    response: ['<start_function_response>', '<end_function_response>'],
    turn: ['<start_of_turn>', '<end_of_turn>'],
    channel: [],
    quote: '<escape>',
    instructor: 'developer',
  },
  gemma4: {
    declaration: ['<|tool>', '<tool|>'],
    call: ['<|tool_call>', '<tool_call|>'],
    response: ['<|tool_response>', '<tool_response|>'],
    turn: ['<|turn>', '<turn|>'],
    channel: ['<|channel>', '<channel|>'],
    quote: '<|"|>',
    instructor: 'system',
  },
} as const

/** The sentence before the declarations with which the model was trained. */
export const developerText = 'You are a model that can do function calling with the following functions'

/** Puts a space into each control token of both vocabularies, so that a model reads it as text. Other text stays as it is. */
export function neutralizeControlTokens(text: string): string {
  const token = /<(?=(?:(?:start|end)_(?:of_turn|of_image|function_[a-z]+)|escape|bos|eos|pad|unk|mask|unused\d+|\|[^<>\s]*|[^<>\s]+\|)>)/g
  return text.replace(token, '< ')
}

export type Members = { readonly [key: string]: unknown }

/** `parameters` is a JSON Schema of an object. */
export type ToolDefinition = { readonly name: string; readonly description: string; readonly parameters?: object }

/** Returns the declarations of tools, one directly after another; they follow `developerText` in the turn of the instructor. */
export function formatForFunctionGemma(tools: readonly ToolDefinition[], dialect: GemmaDialect = 'functiongemma'): string {
  const written = tools.map(({ name, description, parameters }) => {
    const schema = declared({ ...parameters, description: undefined, type: 'object' })
    return between('declaration', name, { description, parameters: schema }, dialect)
  })
  return written.join('')
}

/** The format has one type for each value: of several, the first that is not null counts. */
function declared({ description, type, properties, required, items, enum: words }: Members): Members {
  const inner = isObject(properties) ? Object.entries(properties) : []
  const [first = isObject(properties) ? 'object' : 'string'] = [type].flat().filter((each) => each && each !== 'null')
  const some = (list: unknown) => (Array.isArray(list) && list.length > 0 ? list : undefined)
  const one = ([key, each]: readonly [string, unknown]) => [key, declared({ description: '', ...Object(each) })]
  return {
    description: description === undefined ? undefined : String(description),
    enum: some(words),
    items: isObject(items) ? declared(items) : undefined,
    properties: inner.length > 0 ? Object.fromEntries(inner.map(one)) : undefined,
    required: some(required),
    type: String(first).toUpperCase(),
  }
}

/** Returns a call as the model writes it. */
export function formatCall(name: string, args: Members, dialect: GemmaDialect): string {
  return between('call', name, args, dialect)
}

/** Returns the result of a call; it follows the call in the same turn of the model. */
export function formatFunctionGemmaResponse(name: string, result: Members, dialect: GemmaDialect = 'functiongemma'): string {
  return between('response', name, result, dialect)
}

function between(kind: 'declaration' | 'call' | 'response', name: string, members: Members, dialect: GemmaDialect): string {
  const { quote, [kind]: tokens } = gemmaDialects[dialect]
  return `${tokens[0]}${kind}:${name.replace(/[^\w.-]/g, '_')}${formatValue(members, quote)}${tokens[1]}`
}

/** Sorts members by name and leaves out undefined ones. */
function formatValue(value: unknown, quote: string): string {
  if (typeof value === 'string') return quoted(value, quote)
  if (Array.isArray(value)) return `[${value.map((each: unknown) => formatValue(each, quote)).join(',')}]`
  if (!isObject(value)) return String(value ?? null)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const keyOf = (key: string) => (/^[\w.$-]+$/.test(key) ? key : quoted(key, quote))
  const written = members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => `${keyOf(key)}:${formatValue(member, quote)}`)
  return `{${written.join(',')}}`
}

function quoted(text: string, quote: string): string {
  return quote + neutralizeControlTokens(text) + quote
}

/** `args` is absent when the call cannot be read: it is not in the grammar, or the reply ended in it. `raw` is its text. */
export type GemmaPiece =
  | { readonly type: 'text' | 'thinking'; readonly text: string }
  | { readonly type: 'call'; readonly name: string; readonly args?: Members; readonly raw: string }

/** `push` returns text as soon as it cannot be the beginning of a token; `end` returns the rest, and an unfinished call. */
export type GemmaParser = { push(text: string): GemmaPiece[]; end(): GemmaPiece[] }

/** Creates a parser of one reply that may be cut anywhere. It ends at the end of the turn, and where the model waits for a response. */
export function createGemmaParser(dialect: GemmaDialect): GemmaParser {
  const { call, response, turn, channel, quote } = gemmaDialects[dialect]
  const tokens: readonly string[] = [...call, response[0], turn[1], quote, ...channel]
  const pattern = new RegExp(tokens.map(literal).join('|'), 'g')
  /** `name`: in the first line of a channel, which is its name. */
  let state: 'text' | 'thinking' | 'name' | 'call' | 'over' = 'text'
  let held = ''
  let isQuoted = false
  const body: string[] = []
  const pieces: GemmaPiece[] = []

  function take(text: string): void {
    const line = text.indexOf('\n') + 1
    if (state === 'call') body.push(text)
    else if (state !== 'name' && state !== 'over' && text !== '') pieces.push({ type: state, text })
    else if (state === 'name' && line > 0) {
      state = 'thinking'
      take(text.slice(line))
    }
  }

  function takeToken(token: string): void {
    if (token === quote && state === 'call') isQuoted = !isQuoted
    const isText = isQuoted || token === quote || (token === call[1] && state !== 'call')
    if (isText) take(token)
    if (isText || state === 'over') return
    if (state === 'call') finish(token === call[1])
    state = token === call[0] ? 'call' : token === channel[0] ? 'name' : token === response[0] || token === turn[1] ? 'over' : 'text'
  }

  function finish(isWhole: boolean): void {
    const raw = body.splice(0).join('')
    const name = /^\s*call:\s*([^\s{]*)/.exec(raw)?.[1] ?? ''
    pieces.push({ type: 'call', name, args: isWhole ? readCall(raw, quote) : undefined, raw })
    isQuoted = false
  }

  return {
    push(text) {
      const window = held + text
      let at = 0
      for (const { 0: token, index } of window.matchAll(pattern)) {
        take(window.slice(at, index))
        takeToken(token)
        at = index + token.length
      }
      const last = window.lastIndexOf('<')
      const end = last >= at && tokens.some((token) => token.startsWith(window.slice(last))) ? last : window.length
      take(window.slice(at, end))
      held = window.slice(end)
      return pieces.splice(0)
    },
    end() {
      take(held)
      held = ''
      if (state === 'call') finish(false)
      state = 'over'
      return pieces.splice(0)
    },
  }
}

/**
 * Reads `call:NAME{…}` as JSON after writing its texts, keys and bare words in quotation marks.
 * @returns the arguments; undefined when the text is not in the grammar
 */
function readCall(raw: string, quote: string): Members | undefined {
  const members = /^\s*call:\s*[^\s{]+\s*(\{.*)$/s.exec(raw)?.[1] ?? ''
  const tokens = [
    `${literal(quote)}(.*?)${literal(quote)}`,
    String.raw`(?=[^:,{}[\]<\s"])(?<=[{,]\s*)([^:,{}[\]<]+)(?=:)`,
    String.raw`([^:,{}[\]<\s"][^,{}[\]<]*)`,
    String.raw`,(?<=[^{[,\s]\s*,)\s*(?=[}\]])`,
    // Inside lists and objects Gemma 4 falls back to JSON now and then.
    String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`,
  ]
  const written = members.replace(new RegExp(tokens.join('|'), 'gs'), (token, text?: string, key?: string, bare?: string) => {
    const word = text ?? key?.trim() ?? bare?.trim()
    if (word === undefined) return token.startsWith(',') ? '' : token
    return word === bare?.trim() && parseJson(word) !== undefined ? word : JSON.stringify(word)
  })
  const args = parseJson(written)
  return isObject(args) ? soundObject(args) : undefined
}

function literal(token: string): string {
  return token.replaceAll('|', '\\|')
}
