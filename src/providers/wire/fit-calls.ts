/** Fits the arguments of calls to the schemas of their tools, where models wrote them in another type. */

import { isJsonObject, type Json, type JsonObject, parseJson } from '../../kit/json.ts'
import type { Part } from '../../runtime/event.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import { soundJson } from './call-arguments.ts'

/** Fits the arguments of calls to the schemas of their tools; the metadata keeps what the model sent. What is judged and run is the result. */
export function fitCalls(parts: readonly Part[], tools: readonly ToolSpec[]): readonly Part[] {
  return parts.map((part) => {
    const tool = part.type === 'call' && tools.find(({ name }) => name === part.name)
    if (!tool || part.malformed !== undefined) return part
    const input = readAs(part.input, soundJson(tool.parameters))
    if (!isJsonObject(input) || Bun.deepEquals(input, part.input)) return part
    return { ...part, input, meta: { sent: JSON.stringify(part.input), ...part.meta } }
  })
}

/** Reads a text where only another type is allowed, and leaves out null where a member may be absent and may not be null. */
function readAs(value: Json, schema: Json | undefined): Json {
  if (!isJsonObject(schema)) return value
  const { properties, required, items } = schema
  if (typeof value === 'string' && schema.type !== undefined && !allows(schema, 'string')) {
    const text = value.trim().replace(/^(?:true|false)$/i, (word) => word.toLowerCase())
    const read = soundJson(parseJson(text))
    const isRead = read !== undefined && read !== null && kindsOf(read).some((kind) => allows(schema, kind))
    return isRead ? readAs(read, schema) : value
  }
  if (Array.isArray(value)) return value.map((item) => readAs(item, items))
  if (!isJsonObject(value) || !isJsonObject(properties)) return value
  const isNeedless = (key: string) =>
    isJsonObject(properties[key]) &&
    properties[key].type !== undefined &&
    !allows(properties[key], 'null') &&
    !(Array.isArray(required) && required.includes(key))
  const kept = Object.entries(value).filter(([key, member]) => member !== null || !isNeedless(key))
  return Object.fromEntries(
    kept.map(([key, member]) => [key, readAs(member, Object.hasOwn(properties, key) ? properties[key] : undefined)]),
  )
}

function allows({ type }: JsonObject, kind: string): boolean {
  return Array.isArray(type) ? type.includes(kind) : type === kind
}

function kindsOf(value: Json): string[] {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? ['integer', 'number'] : Number.isInteger(value) ? [] : ['number']
  return [Array.isArray(value) ? 'array' : typeof value]
}
