/** Turns a stored conversation into what the page shows of it. */

import type { Piece } from '../parts/turn.tsx'
import type { Conversation } from '../shapes.ts'

export function piecesOf({ turns }: Conversation): readonly Piece[] {
  return turns.flatMap(({ role, text, calls = [] }): Piece[] => [
    ...(text === '' ? [] : [role === 'user' ? ({ kind: 'user', text } as const) : ({ kind: 'text', text } as const)]),
    ...calls.map((call): Piece => ({ kind: 'call', call })),
  ])
}
