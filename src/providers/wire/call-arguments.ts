/** Turns the arguments and the id that a model wrote for a tool call into valid JSON and a unique, portable id. */

import { isObject, type Json, type JsonObject, parseJson } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { Message } from '../../runtime/port.ts'

/** Refuses deeper input, because all later code (hashes, schemas) recurses over it. */
const maxDepth = 64

/**
 * Copies plain JSON and omits undefined members.
 * @returns undefined when the value contains half a character (a lone surrogate), an infinite number or too deep a nesting
 */
export function soundJson(value: unknown, depth = 0): Json | undefined {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') return value.isWellFormed() ? value : undefined
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (depth >= maxDepth) return undefined
  if (Array.isArray(value)) return soundArray(value, depth)
  return isObject(value) ? soundObject(value, depth) : undefined
}

export function soundObject(value: { readonly [key: string]: unknown }, depth = 0): JsonObject | undefined {
  const members: [string, Json][] = []
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue
    const sound = soundJson(member, depth + 1)
    if (sound === undefined || !key.isWellFormed()) return undefined
    members.push([key, sound])
  }
  return Object.fromEntries(members)
}

function soundArray(items: readonly unknown[], depth: number): Json | undefined {
  const sound: Json[] = []
  for (const item of items) {
    const one = soundJson(item, depth + 1)
    if (one === undefined) return undefined
    sound.push(one)
  }
  return sound
}

/** `sent`: the text of the model, where it was repaired. */
export type ReadArguments = { readonly input: JsonObject; readonly malformed?: string; readonly sent?: string }

/** An empty text, white space and `null` mean "no arguments"; anything else that is not a valid JSON object is kept as `malformed`. */
export function readArguments(raw: string): ReadArguments {
  const text = raw.trim()
  if (text === '' || text === 'null') return { input: {} }
  for (const candidate of [text, repairText(text), repairText(repairText(text))]) {
    const value = parseJson(candidate)
    const input = isObject(value) ? soundObject(value) : undefined
    if (input !== undefined) return candidate === text ? { input } : { input, sent: raw }
  }
  return unread(raw)
}

/** Repairs what can mean only one thing: JSON in a JSON string, an empty object before the real one, control characters in a string. */
function repairText(text: string): string {
  const inner = parseJson(text)
  if (typeof inner === 'string') return inner.trim()
  const whole = text.replace(/^\{\s*\}\s*(?=\{)/, '')
  return whole.replace(/"(?:[^"\\]|\\\S)*"/g, (string) => string.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1)))
}

/**
 * Keeps the text that a model wrote instead of arguments. It escapes half a character, so that the text can be stored and still shows the
 * error.
 */
export function unread(raw: string): ReadArguments {
  const text = raw.isWellFormed() ? raw : raw.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`)
  return { input: {}, malformed: text }
}

/**
 * Marks the last call of a reply that reached its output limit as unread when it has no arguments: it may be cut before the first of them,
 * and "no arguments" would be a call that the model did not make.
 */
export function unreadCutCall(parts: readonly Part[]): readonly Part[] {
  const last = parts.at(-1)
  if (last?.type !== 'call' || last.malformed !== undefined || Object.keys(last.input).length > 0) return parts
  return [...parts.slice(0, -1), { ...last, ...unread('') }]
}

/** Gives each call an id that is unique in this conversation, with the letters and length that every vendor accepts. */
export function idMaker(messages: readonly Message[]): (wanted: string) => string {
  const used = new Set<string>()
  for (const message of messages) {
    if (message.role === 'tool') used.add(message.callId)
    if (message.role === 'assistant') for (const part of message.parts) if (part.type === 'call') used.add(part.id)
  }
  const next = new Map<string, number>()
  return (wanted) => {
    const base = wanted.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'
    let id = base
    // Continues from the last number, because many calls with one id would otherwise take quadratic time.
    let n = next.get(base) ?? 2
    while (used.has(id)) id = `${base}-${n++}`
    next.set(base, n)
    used.add(id)
    return id
  }
}

/** Makes a tool's name acceptable to every vendor: a model may call a tool of any name, or without a name. */
export function portableName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}
