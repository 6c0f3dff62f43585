/** Keeps what a conversation shows: what is stored of it, and each live event added to that. */

import type { Live } from '../net/live.ts'
import type { Conversation, Message, RunSummary } from '../shapes.ts'
import type { CallShown, Piece } from './turn.tsx'

/** `runs` say how each turn ended; the messages do not. */
export function piecesOf({ messages }: Conversation, runs: readonly RunSummary[]): readonly Piece[] {
  const results = new Map(messages.flatMap(resultsOf))
  return messages.flatMap((message, at): Piece[] => {
    const run = message.metadata?.run_id
    const isLast = run !== undefined && messages.slice(at + 1).every(({ metadata }) => metadata?.run_id !== run)
    const ended = isLast ? runs.find(({ id }) => id === run) : undefined
    return [...said(message, results), ...(ended?.code === undefined ? [] : endOf({ code: ended.code, message: ended.message ?? '' }))]
  })
}

type Result = { readonly status: string; readonly output: string }

function resultsOf({ content, tool_results }: Message): [string, Result][] {
  return (tool_results ?? []).map(({ call_id, status }) => [call_id, { status, output: content }])
}

function said({ role, content, tool_calls }: Message, results: ReadonlyMap<string, Result>): Piece[] {
  if (role === 'tool') return []
  const text: Piece[] = content === '' ? [] : [{ kind: role === 'user' ? 'user' : 'text', text: content }]
  const calls = (tool_calls ?? []).map(({ id, name, input }): Piece => {
    return { kind: 'call', call: { id, tool: name, input, ...results.get(id) } }
  })
  return [...text, ...calls]
}

/** Numbered text is the whole of what streamed before it. */
export function addEvent(pieces: readonly Piece[], { id, event }: Live): readonly Piece[] {
  switch (event.type) {
    case 'run_started':
      return [...settled(pieces), { kind: 'user', text: event.message }]
    case 'text':
    case 'thinking':
      return id === undefined ? streamed(pieces, event.type, event.content) : whole(pieces, event.type, event.content)
    case 'tool_use':
      return [...settled(pieces), { kind: 'call', call: { id: event.toolCallId, tool: event.toolName, input: event.input } }]
    case 'tool_result':
      return pieces.map((piece) =>
        piece.kind === 'call' && piece.call.id === event.toolCallId
          ? { kind: 'call', call: { ...piece.call, ...outcomeOf(event) } }
          : piece,
      )
    case 'run_ended':
      return [...settled(pieces), ...endOf(event)]
    default:
      return pieces
  }
}

function streamed(pieces: readonly Piece[], kind: 'text' | 'thinking', text: string): readonly Piece[] {
  const last = pieces.at(-1)
  if (last?.kind === kind && last.partial) return [...pieces.slice(0, -1), { kind, text: last.text + text, partial: true }]
  return [...pieces, { kind, text, partial: true }]
}

function whole(pieces: readonly Piece[], kind: 'text' | 'thinking', text: string): readonly Piece[] {
  const isStream = (piece: Piece) => piece.kind === kind && piece.partial === true
  const at = pieces.findIndex(isStream)
  const kept = pieces.filter((piece) => !isStream(piece))
  return text === '' ? kept : kept.toSpliced(at < 0 ? kept.length : at, 0, { kind, text })
}

function settled(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.map((piece) => ('partial' in piece ? { kind: piece.kind, text: piece.text } : piece))
}

function outcomeOf({ status, output }: Extract<Live['event'], { type: 'tool_result' }>): Pick<CallShown, 'status' | 'output'> {
  if (output === undefined) return { status }
  return { status, output: typeof output === 'string' ? output : JSON.stringify(output, null, 2) }
}

/** A turn that ended well needs no further words. */
function endOf({ code, message }: { readonly code: string; readonly message: string }): readonly Piece[] {
  return code === 'answered' ? [] : [{ kind: 'problem', text: `The turn ended (${code})${message === '' ? '' : `: ${message}`}` }]
}
