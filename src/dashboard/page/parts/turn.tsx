/** Shows what happened in a turn: what was said, each call with its outcome, and questions where they were asked. */

import { Markdown } from './markdown.tsx'
import { Block, Tag } from './small.tsx'

export type CallShown = {
  readonly id: string
  readonly tool: string
  readonly input: unknown
  /** Absent while it runs. */
  readonly status?: 'completed' | 'failed' | 'allowed' | 'denied'
  readonly output?: string
}

export type Piece =
  | { readonly kind: 'user'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string; readonly partial?: boolean }
  | { readonly kind: 'thinking'; readonly text: string; readonly partial?: boolean }
  | { readonly kind: 'call'; readonly call: CallShown }
  | { readonly kind: 'asked'; readonly tool: string }
  | { readonly kind: 'problem'; readonly text: string }

export function Pieces({ of }: { readonly of: readonly Piece[] }) {
  return (
    <>
      {of.map((piece, at) => (
        <PieceView key={at} piece={piece} />
      ))}
    </>
  )
}

function PieceView({ piece }: { readonly piece: Piece }) {
  switch (piece.kind) {
    case 'user':
      return (
        <div class="said user">
          <span class="hidden">You: </span>
          <p>{piece.text}</p>
        </div>
      )
    case 'text':
      return (
        <div class={piece.partial ? 'said working' : 'said'}>
          <Markdown text={piece.text} />
        </div>
      )
    case 'thinking':
      return (
        <details class="quiet small">
          <summary>Thinking</summary>
          <p>{piece.text}</p>
        </details>
      )
    case 'call':
      return <CallView call={piece.call} />
    case 'asked':
      return (
        <p class="card ask">
          {piece.tool} waits for an answer. <a href="#/">Answer it</a>
        </p>
      )
    case 'problem':
      return <p class="card bad">{piece.text}</p>
  }
}

function CallView({ call: { tool, input, status, output } }: { readonly call: CallShown }) {
  const kind = status === undefined ? '' : status === 'completed' || status === 'allowed' ? 'good' : 'bad'
  return (
    <details class="call">
      <summary>
        <code>{tool}</code> <span class="small">{oneLine(input)}</span> <Tag kind={kind}>{status ?? 'running'}</Tag>
      </summary>
      <Block label={`Input of ${tool}`} text={JSON.stringify(input, null, 2)} />
      {output !== undefined && <Block label={`Output of ${tool}`} text={output} />}
    </details>
  )
}

function oneLine(input: unknown): string {
  const text = typeof input === 'object' && input !== null ? Object.values(input).map(String).join(' ') : String(input)
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}

/** Adds a live event to what a turn shows; numbered text replaces the pieces that streamed before it. */
export function addEvent(pieces: readonly Piece[], event: { readonly type: string; readonly [key: string]: unknown }): readonly Piece[] {
  const text = String(event.content ?? '')
  switch (event.type) {
    case 'run_started':
      return [...pieces, { kind: 'user', text: String(event.message ?? '') }]
    case 'text':
    case 'thinking':
      return event.isPartial === false || event.type === 'thinking' ? whole(pieces, event.type, text) : added(pieces, event.type, text)
    case 'tool_use':
      return [
        ...settled(pieces),
        { kind: 'call', call: { id: String(event.toolCallId), tool: String(event.toolName), input: event.input } },
      ]
    case 'tool_result':
      return pieces.map((piece) => (piece.kind === 'call' && piece.call.id === event.toolCallId ? ended(piece.call, event) : piece))
    case 'approval_gate':
      return [...pieces, { kind: 'asked', tool: String(event.toolName) }]
    case 'approval_closed':
      return pieces.filter(({ kind }) => kind !== 'asked')
    case 'error':
      return [...pieces, { kind: 'problem', text: String(event.message ?? event.code) }]
    case 'run_ended':
      return endOf(settled(pieces), event)
    default:
      return pieces
  }
}

function added(pieces: readonly Piece[], kind: 'text' | 'thinking', text: string): readonly Piece[] {
  const last = pieces.at(-1)
  if (last?.kind === kind && last.partial) return [...pieces.slice(0, -1), { kind, text: last.text + text, partial: true }]
  return [...pieces, { kind, text, partial: true }]
}

function whole(pieces: readonly Piece[], kind: 'text' | 'thinking', text: string): readonly Piece[] {
  const kept = pieces.filter((piece) => !(piece.kind === kind && piece.partial))
  return text === '' ? kept : [...kept, { kind, text }]
}

function settled(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.map((piece) => ('partial' in piece ? { kind: piece.kind, text: piece.text } : piece))
}

function ended(call: CallShown, { status, output }: { readonly [key: string]: unknown }): Piece {
  const text = output === undefined ? undefined : typeof output === 'string' ? output : JSON.stringify(output, null, 2)
  return {
    kind: 'call',
    call: { ...call, status: status === 'completed' ? 'completed' : 'failed', ...(text === undefined ? {} : { output: text }) },
  }
}

/** A turn that ended well needs no further words. */
function endOf(pieces: readonly Piece[], { code, message }: { readonly [key: string]: unknown }): readonly Piece[] {
  return code === 'answered' ? pieces : [...pieces, { kind: 'problem', text: `The turn ended: ${String(message || code)}` }]
}
