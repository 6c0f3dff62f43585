/** Tool calls out of their pieces: which call a piece belongs to, told by index, id and name as far as a server gives them. */

import { isObject, type JsonObject } from '../../kit/json.ts'
import type { RawCall } from '../parts.ts'
import { parsed, stringIn, unreadable } from './shape.ts'

export type Calls = {
  /** Takes one member of a `tool_calls`; `place` when it is known to be a call of its own. Returns the text in it, for counting. */
  take(piece: unknown, place?: number): string
  all(): readonly RawCall[]
}

type Open = { readonly index: number | undefined; id: string; name: string; raw: string; signature: string }

type Piece = Readonly<Open>

export function collectCalls(): Calls {
  const calls: Open[] = []
  const byIndex = new Map<number, Open>()

  function callOf(piece: Piece): Open | undefined {
    if (piece.index !== undefined) return byIndex.get(piece.index)
    if (piece.id !== '') return calls.findLast((call) => call.id === piece.id)
    return piece.name === '' ? calls.at(-1) : undefined
  }

  function open(piece: Piece): void {
    const call = { ...piece }
    calls.push(call)
    if (call.index !== undefined) byIndex.set(call.index, call)
  }

  return {
    take(value, place) {
      const piece = readPiece(value, place)
      const call = callOf(piece)
      if (call === undefined || begins(piece, call)) open(piece)
      else append(call, piece)
      return piece.id + piece.name + piece.raw
    },
    all: () => calls.filter(isCall).map(rawCall),
  }
}

/** Some servers give each of several calls the same index: another name, or arguments that start over, are another call. */
function begins(piece: Piece, call: Open): boolean {
  if (piece.name === '' || call.name === '') return false
  if (piece.name !== call.name) return true
  const startsOver = piece.raw.trimStart().startsWith('{') || (piece.raw === '' && piece.id !== '' && piece.id !== call.id)
  return startsOver && isObject(parsed(call.raw))
}

function append(call: Open, piece: Piece): void {
  call.id ||= piece.id
  call.name ||= piece.name
  call.raw += piece.raw
  call.signature ||= piece.signature
}

function readPiece(value: unknown, place: number | undefined): Piece {
  if (!isObject(value)) throw unreadable('a tool call that is no object', value)
  const { index, extra_content: extra } = place === undefined ? value : { ...value, index: place }
  const said = value.function ?? {}
  if (!isObject(said)) throw unreadable('a tool call whose function is no object', value)
  if (index !== undefined && index !== null && !Number.isSafeInteger(index)) throw unreadable('a tool call without a sound index', value)
  const google = isObject(extra) && isObject(extra.google) ? extra.google : {}
  return {
    index: typeof index === 'number' ? index : undefined,
    id: stringIn(value, 'id').trim(),
    name: stringIn(said, 'name').trim(),
    // Some servers send the arguments as the object itself.
    raw: isObject(said.arguments) ? JSON.stringify(said.arguments) : stringIn(said, 'arguments'),
    signature: stringIn(google, 'thought_signature'),
  }
}

/** A piece without anything in it is none. */
function isCall(call: Open): boolean {
  return call.name !== '' || call.raw.trim() !== ''
}

function rawCall({ id, name, raw, signature }: Open): RawCall {
  if (name === '') throw unreadable('a tool call without a name', { id, arguments: raw })
  const meta: JsonObject = signature === '' ? {} : { compatible: { thoughtSignature: signature.toWellFormed() } }
  return { id, name, raw, meta }
}
