/** Defines the protocol of the six FIFOs between an agent and its three bridges: names, messages, requests to the claw, and answers. */

import { type Json, parseJson } from './json.ts'

/** `x_in` and `x_out` are named from the agent's side for `interact`, and from the bridge's side for `brain` and `claw`. */
export const FIFOS = ['interact', 'brain', 'claw'].flatMap((part) => [`${part}_in`, `${part}_out`])

/** A line between the agent and the outside: `channel` is the address for the answer; `text` may have many lines. */
export type Message = { readonly channel: string; readonly text: string }

/** Why a line is not a message; the text follows "has". */
type MessageProblem = 'no tab' | 'no channel' | 'no text'

export type ReadMessage = ({ readonly ok: true } & Message) | { readonly ok: false; readonly problem: MessageProblem }

/** Escapes backslash, newline and tab as `\\`, `\n` and `\t`; all other characters stay, carriage returns included. */
export function escapeText(text: string): string {
  return text.replace(/[\\\n\t]/g, jsonEscape)
}

/** Escapes a character as JSON does within a string. */
function jsonEscape(character: string): string {
  return JSON.stringify(character).slice(1, -1)
}

/** Reverses `escapeText`. An unknown escape or a backslash at the end stays as it is: not every bridge escapes the backslash. */
export function unescapeText(text: string): string {
  return text.replace(/\\[\\nt]/g, (code) => JSON.parse(`"${code}"`))
}

/**
 * Reads `{channel}\t{text}` without its newline. One `\r` at the end belongs to the line ending; a text of only white space is not a
 * message.
 */
export function readMessage(line: string): ReadMessage {
  const tab = line.indexOf('\t')
  const channel = line.slice(0, tab)
  const text = unescapeText(line.slice(tab + 1).replace(/\r$/, ''))
  const problem = tab < 0 ? 'no tab' : !channel ? 'no channel' : !text.trim() ? 'no text' : undefined
  return problem ? { ok: false, problem } : { ok: true, channel, text }
}

/**
 * Formats `{channel}\t{text}\n` for a FIFO. A `\r` at the end of the text gets lost.
 * @throws RangeError for a channel that is empty or contains a tab or newline; no line that was read has one.
 */
export function messageLine({ channel, text }: Message): string {
  if (!/^[^\t\n]+$/.test(channel)) throw new RangeError(`channel ${JSON.stringify(channel)}: no line can carry it`)
  return `${channel}\t${escapeText(text)}\n`
}

/**
 * The two names of the request for the claw's tools. The agent understands both, sends the first, and tries the second if it got no list.
 */
export const DISCOVERY = ['__list_tools__', 'list_tools'] as const

type ClawRequest =
  | { readonly type: 'list' }
  | { readonly type: 'call'; readonly name: string; readonly input: string }
  | { readonly type: 'problem'; readonly problem: 'no tab' | 'no name' }

/** Reads a line to the claw without its newline. `input` is the text after the tab, JSON by contract; it is not parsed here. */
export function readClawRequest(line: string): ClawRequest {
  const [name = '', ...input] = line.replace(/\r$/, '').split('\t')
  if (input.length > 0) return name === '' ? { type: 'problem', problem: 'no name' } : { type: 'call', name, input: input.join('\t') }
  return DISCOVERY.some((word) => word === name) ? { type: 'list' } : { type: 'problem', problem: 'no tab' }
}

/**
 * Formats `{name}\t{input}\n`; `input` is a JSON value. The name is escaped so that it cannot end the line; an escaped name matches no
 * tool.
 */
export function callLine(name: string, input: unknown): string {
  return `${escapeText(name)}\t${jsonLine(input)}`
}

/** Formats JSON on one line, with the newline. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}

type Members = { readonly [key: string]: unknown }

/** Returns the members of an object; null has none, other values have their own. */
export function fieldsOf(value: unknown): Members {
  return Object(value)
}

export type ToolUse = { readonly id: string; readonly name: string; readonly input?: unknown }

export type BrainReply = ReturnType<typeof readReply>

/**
 * Reads a message of the Messages API, or `{"error": …}`, by its structure; it never searches its text. It looks for `tool_use` blocks only
 * if `stop_reason` announces them.
 */
export function readReply(frame: string) {
  const { error, content, stop_reason } = fieldsOf(parseEchoed(frame))
  const isMessage = Array.isArray(content)
  const blocks = isMessage && !error ? content.map(fieldsOf) : []
  return {
    /** The runtime sends it back to the brain unchanged. */
    content,
    /** If there are any, the reply requests these tools; otherwise `text` is the answer, which may be empty. */
    uses: stop_reason === 'tool_use' ? blocks.filter(isToolUse) : [],
    text: blocks.map(({ text }) => (typeof text === 'string' ? text : '')).join(''),
    /** Why it is no message: the bridge's own code (`timeout`, `fatal`) or the vendor's error; an unreadable frame counts as `fatal`. */
    error: error || (isMessage ? 0 : 'fatal'),
  }
}

function isToolUse(block: Members): block is Members & ToolUse {
  return block.type === 'tool_use' && typeof block.id === 'string' && typeof block.name === 'string'
}

/** Returns the claw's list of tools unchanged, or undefined when the frame is not a JSON array. */
export function readTools(frame: string): readonly Json[] | undefined {
  const list = parseEchoed(frame)
  return Array.isArray(list) ? list : undefined
}

/**
 * Parses plain JSON, else JSON that a shell's `echo` has expanded once: dash's `echo "$json"` turns the two characters `\n` in a string
 * into a newline. In the second case a control character in a string stands for itself, and so does a backslash unless `"` or `uXXXX`
 * follows it: `echo` has expanded every other escape. @returns undefined for any other text
 */
export function parseEchoed(text: string): unknown {
  return parseJson(text) ?? parseJson(restore(text))
}

/**
 * Parses as `parseEchoed` does. If that fails, it also tries JSON in which a string ended with a backslash: `echo` left one backslash
 * before the closing quote, which then reads like an escaped quote. More JSON follows the real end of the string; the last candidate that
 * parses wins.
 */
export function recoverEchoed(text: string): unknown {
  const found = parseEchoed(text)
  if (found !== undefined) return found
  const ends = [...text.matchAll(/\\"(?=[\s,:{}[\]]+("|$))/g)].slice(-MOST_ENDS).reverse()
  for (const { index } of ends) {
    const ended = parseJson(restore(`${text.slice(0, index)}\\u005c${text.slice(index + 1)}`))
    if (ended !== undefined) return ended
  }
  return undefined
}

/** The most candidates that it tries; each one scans the whole text. */
const MOST_ENDS = 16

/** Restores the escapes, in strings only: a newline between strings is white space. */
function restore(text: string): string {
  return text.replace(/".*?((?<!\\)"|$)/gs, (string) => string.replace(/\\(?!"|u[\da-f]{4})|\p{Cc}/giu, jsonEscape))
}
