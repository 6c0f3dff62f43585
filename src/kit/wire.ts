/** What is said on the six FIFOs between an agent and its three bridges: their names, messages, and requests to the claw. */

/** `x_in` and `x_out` are seen from the agent for `interact`, and from the bridge for `brain` and `claw`. */
export const FIFOS = ['interact', 'brain', 'claw'].flatMap((part) => [`${part}_in`, `${part}_out`])

/** A line between the agent and the outside: `channel` says to whom the answer goes, `text` may have many lines. */
export type Message = { readonly channel: string; readonly text: string }

/** Why a line is no message, in words that follow "has". */
export type MessageProblem = 'no tab' | 'no channel' | 'no text'

export type ReadMessage = ({ readonly ok: true } & Message) | { readonly ok: false; readonly problem: MessageProblem }

/** Backslash, newline and tab become `\\`, `\n` and `\t`; everything else, carriage returns too, stays as it is. */
export function escapeText(text: string): string {
  return text.replace(/[\\\n\t]/g, jsonEscape)
}

/** As JSON writes the character in a string. */
export function jsonEscape(character: string): string {
  return JSON.stringify(character).slice(1, -1)
}

/** The reverse. Another escape, or a backslash at the end, is taken as it stands: not every bridge escapes the backslash. */
export function unescapeText(text: string): string {
  return text.replace(/\\[\\nt]/g, (code) => JSON.parse(`"${code}"`))
}

/** `{channel}\t{text}` without its newline. One `\r` at the end belongs to the line's ending; text of white space alone is no message. */
export function readMessage(line: string): ReadMessage {
  const tab = line.indexOf('\t')
  const channel = line.slice(0, tab)
  const text = unescapeText(line.slice(tab + 1).replace(/\r$/, ''))
  const problem = tab < 0 ? 'no tab' : !channel ? 'no channel' : !text.trim() ? 'no text' : undefined
  return problem ? { ok: false, problem } : { ok: true, channel, text }
}

/**
 * `{channel}\t{text}\n` for a FIFO. A last `\r` of the text does not arrive.
 * @throws RangeError for a channel that is empty or holds a tab or newline: no line that was read has such a one.
 */
export function messageLine({ channel, text }: Message): string {
  if (!/^[^\t\n]+$/.test(channel)) throw new RangeError(`channel ${JSON.stringify(channel)}: no line can carry it`)
  return `${channel}\t${escapeText(text)}\n`
}

/** How the claw is asked for its tools. Both spellings are about: we understand both, send the first, and then the second if that got no list. */
export const DISCOVERY = ['__list_tools__', 'list_tools'] as const

export type ClawRequest =
  | { readonly type: 'list' }
  | { readonly type: 'call'; readonly name: string; readonly input: string }
  | { readonly type: 'problem'; readonly problem: 'no tab' | 'no name' }

/** A line to the claw without its newline. `input` is the text after the tab, JSON by contract, not looked at. */
export function readClawRequest(line: string): ClawRequest {
  const [name = '', ...input] = line.replace(/\r$/, '').split('\t')
  if (input.length > 0) return name === '' ? { type: 'problem', problem: 'no name' } : { type: 'call', name, input: input.join('\t') }
  return DISCOVERY.some((word) => word === name) ? { type: 'list' } : { type: 'problem', problem: 'no tab' }
}

/** `{name}\t{input}\n`, `input` being a JSON value. No name can break out of its line: what would is escaped, and then no tool's name. */
export function callLine(name: string, input: unknown): string {
  return `${escapeText(name)}\t${jsonLine(input)}`
}

/** JSON on one line, with the newline. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}

/** JSON, or undefined for text that is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type Fields = { readonly [key: string]: unknown }

/** The members of an object; of null none, of other values whatever they have. */
export function fieldsOf(value: unknown): Fields {
  return Object(value)
}
