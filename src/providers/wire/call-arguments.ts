/** Takes what a model wrote as a tool call's arguments and id, and makes sound JSON and a unique, portable id of it. */

import { isObject, type Json, type JsonObject } from '../../kit/json.ts'
import type { Message } from '../../runtime/port.ts'

/** Deeper input is refused: everything downstream (hashes, schemas) recurses over it. */
const maxDepth = 64

/**
 * A fresh copy of plain JSON; `undefined` when the value holds half a character (a lone surrogate), an infinite number or too deep a nesting.
 * Members that are undefined are left out.
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

export type ReadArguments = { readonly input: JsonObject; readonly malformed?: string }

/** Nothing, white space and `null` mean "no arguments"; anything that is no sound JSON object is kept as `malformed`. */
export function readArguments(raw: string): ReadArguments {
  const text = raw.trim()
  if (text === '' || text === 'null') return { input: {} }
  const value = parse(text)
  const input = isObject(value) ? soundObject(value) : undefined
  return input === undefined ? unread(raw) : { input }
}

/** What a model wrote instead of arguments. Half a character is spelled out, so that the text can be stored and still says what was wrong. */
export function unread(raw: string): ReadArguments {
  const text = raw.isWellFormed() ? raw : raw.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`)
  return { input: {}, malformed: text }
}

/** Gives each call an id that no call of this conversation has, of the letters and length that every vendor takes back. */
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
    // Counted on from the last time, or a flood of calls with one id would take quadratic time.
    let n = next.get(base) ?? 2
    while (used.has(id)) id = `${base}-${n++}`
    next.set(base, n)
    used.add(id)
    return id
  }
}

/** A tool's name as every vendor takes it back: a model is free to ask for a tool of any name, or of none. */
export function portableName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
