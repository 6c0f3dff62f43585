/** Assembles tool calls from their pieces, and assigns each piece to a call by index, id and name, as far as the server sends them. */

import { isObject, type JsonObject, parseJson } from '../../kit/json.ts'
import type { RawCall } from '../wire/reply-parts.ts'

/** A piece in an unknown form still counts as a call: the runtime tells the model that it could not read the call. */
export type Calls = ReturnType<typeof collectCalls>

type Open = { readonly index: number | undefined; readonly isUnknown: boolean; id: string; name: string; raw: string; signature: string }

type Piece = Readonly<Open>

export function collectCalls() {
  const calls: Open[] = []
  const byIndex = new Map<number, Open>()

  function callOf(piece: Piece): Open | undefined {
    if (piece.index !== undefined) return byIndex.get(piece.index)
    if (piece.id !== '') return calls.findLast((call) => call.id === piece.id)
    return piece.name === '' && !piece.isUnknown ? calls.at(-1) : undefined
  }

  function open(piece: Piece): void {
    const call = { ...piece }
    calls.push(call)
    if (call.index !== undefined) byIndex.set(call.index, call)
  }

  return {
    /** Takes one member of a `tool_calls`, with its `place` if it is known to be a separate call. Returns its text, for counting. */
    take(value: unknown, place?: number): string {
      const piece = readPiece(value, place)
      const call = callOf(piece)
      // After a readable call, an unknown piece is only a remark about that call.
      if (piece.isUnknown && call?.isUnknown === false) return ''
      if (call === undefined || begins(piece, call)) open(piece)
      else append(call, piece)
      return piece.id + piece.name + piece.raw
    },
    all: () => calls.filter(isCall).map(rawCall),
  }
}

/** Some servers give several calls the same index: a new name, or arguments that start over, begin a new call. */
function begins(piece: Piece, call: Open): boolean {
  if (piece.name === '' || call.name === '') return false
  if (piece.name !== call.name) return true
  const startsOver = piece.raw.trimStart().startsWith('{') || (piece.raw === '' && piece.id !== '' && piece.id !== call.id)
  return startsOver && isObject(parseJson(call.raw))
}

function append(call: Open, piece: Piece): void {
  call.id ||= piece.id
  call.name ||= piece.name
  call.raw += piece.raw
  call.signature ||= piece.signature
}

function readPiece(value: unknown, place: number | undefined): Piece {
  const { id, index: said, extra_content: extra } = isObject(value) ? value : {}
  const index = place ?? said
  const google = isObject(extra) && isObject(extra.google) ? extra.google : {}
  return {
    index: typeof index === 'number' && Number.isSafeInteger(index) ? index : undefined,
    id: textOf(id).trim(),
    signature: textOf(google.thought_signature),
    ...(saidIn(value) ?? { name: '', raw: JSON.stringify(value), isUnknown: true }),
  }
}

/** Takes the name literally: a tool with another name is another tool. @returns undefined for a piece in an unknown form */
function saidIn(value: unknown): Pick<Piece, 'name' | 'raw' | 'isUnknown'> | undefined {
  if (!isObject(value)) return undefined
  const said = value.function ?? (Object.keys(value).every((key) => ownKeys.includes(key)) ? {} : undefined)
  if (!isObject(said) || !isText(said.name)) return undefined
  // Some servers send the arguments as an object instead of a string.
  const raw = isText(said.arguments) ? (said.arguments ?? '') : JSON.stringify(said.arguments)
  return { name: said.name ?? '', raw, isUnknown: false }
}

/** Keys that may occur beside the function, or in a piece without a function. */
const ownKeys = ['index', 'id', 'type', 'function', 'extra_content']

function isText(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === 'string'
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A piece without any content is not a call. */
function isCall(call: Open): boolean {
  return call.id !== '' || call.name !== '' || call.raw.trim() !== ''
}

function rawCall({ id, name, raw, signature, isUnknown }: Open): RawCall {
  const meta: JsonObject = signature === '' ? {} : { compatible: { thoughtSignature: signature.toWellFormed() } }
  return { id, name, raw, meta, ...(isUnknown ? { isUnknown } : {}) }
}
