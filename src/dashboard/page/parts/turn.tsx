/** Shows what happened in a turn: what was said, and each call with its outcome. */

import { Markdown } from './markdown.tsx'
import { Block, Tag } from './small.tsx'

export type CallShown = {
  readonly id: string
  readonly tool: string
  readonly input: unknown
  /** Absent while it runs, or waits for an answer. */
  readonly status?: string
  readonly output?: string
}

export type Piece =
  | { readonly kind: 'user'; readonly text: string }
  /** `partial`: it still streams. */
  | { readonly kind: 'text' | 'thinking'; readonly text: string; readonly partial?: boolean }
  | { readonly kind: 'call'; readonly call: CallShown }
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
          <summary>{piece.partial ? 'Thinking' : 'Thought'}</summary>
          <p class="said">{piece.text}</p>
        </details>
      )
    case 'call':
      return <CallView call={piece.call} />
    case 'problem':
      return <p class="card bad">{piece.text}</p>
  }
}

function CallView({ call: { tool, input, status, output } }: { readonly call: CallShown }) {
  return (
    <details class="call">
      <summary>
        <code>{tool}</code> <span class="small mono quiet">{oneLine(input)}</span> <Outcome status={status} />
      </summary>
      <Input of={input} tool={tool} />
      {output !== undefined && <Block label={`Output of ${tool}`} text={output} />}
    </details>
  )
}

/** Shows the result of a call. The record uses the words of the gate: "allowed" means that the call ran. */
export function Outcome({ status }: { readonly status: string | undefined }) {
  if (status === undefined) return <Tag>not yet</Tag>
  const isGood = status === 'completed' || status === 'allowed'
  return <Tag kind={isGood ? 'good' : 'bad'}>{isGood ? 'done' : status}</Tag>
}

/** Shows each member of the input by its name, texts as they are. */
export function Input({ of, tool }: { readonly of: unknown; readonly tool: string }) {
  const members = typeof of === 'object' && of !== null ? Object.entries(of) : [['input', of] as const]
  return (
    <>
      {members.map(([name, value]) => (
        <div key={name}>
          <div class="quiet small">{name}</div>
          <Block label={`${name} of ${tool}`} text={typeof value === 'string' ? value : JSON.stringify(value, null, 2)} />
        </div>
      ))}
    </>
  )
}

function oneLine(input: unknown): string {
  const text = typeof input === 'object' && input !== null ? Object.values(input).map(textIn).join(' ') : textIn(input)
  return text.length > 100 ? `${text.slice(0, 99)}…` : text
}

function textIn(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
