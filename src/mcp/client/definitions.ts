/** Reads the lists of a server, all pages, and refuses each definition that nobody could judge, without losing the others. */

import { isJsonObject, isObject, type JsonObject } from '../../kit/json.ts'
import { cut, quote, visible } from '../../kit/text.ts'
import type { Schema } from '../../runtime/port.ts'
import type { McpFailure, McpList, McpPromptDefinition, McpResourceDefinition, McpToolDefinition } from '../contract.ts'

const [mostPages, mostBytes, mostNameLength, mostDefinitionBytes] = [64, 4 * 1024 * 1024, 2_048, 65_536]

export type Page = { readonly [key: string]: unknown; readonly nextCursor?: string | undefined; readonly ttlMs?: unknown }

type RawList = { readonly items: readonly unknown[]; readonly ttlMs: number }

/** A cursor that comes again ends the list. */
export async function allPages(member: string, page: (cursor: string | undefined) => Promise<Page>): Promise<RawList | McpFailure> {
  const items: unknown[] = []
  const cursors = new Set<string | undefined>()
  let [bytes, ttlMs, cursor]: [number, number, string | undefined] = [0, 0, undefined]
  do {
    cursors.add(cursor)
    const next = await page(cursor)
    bytes += JSON.stringify(next).length
    if (bytes > mostBytes || cursors.size > mostPages)
      return { why: `its list of ${member} has more than ${mostPages} pages or ${mostBytes} bytes; ask its author to shorten it` }
    items.push(...(Array.isArray(next[member]) ? next[member] : []))
    if (typeof next.ttlMs === 'number') ttlMs = next.ttlMs
    cursor = next.nextCursor
  } while (cursor !== undefined && !cursors.has(cursor))
  return { items, ttlMs }
}

/** `define` returns the definition, or why there is none. */
export function definitionsOf<T>(items: readonly unknown[], define: (item: JsonObject) => T | string): McpList<T> {
  const defined = new Map<string, T>()
  const refused: { readonly name: string; readonly why: string }[] = []
  for (const item of items) {
    const raw = isJsonObject(item) ? item : {}
    const key = text(raw.uri ?? raw.uriTemplate ?? raw.name)
    const made = whyNoDefinition(raw, key) ?? define(raw)
    const why = defined.has(key) && typeof made !== 'string' ? 'another one has this name' : made
    if (typeof why === 'string') refused.push({ name: cut(visible(key), 200), why })
    else defined.set(key, why)
  }
  return { items: [...defined.values()], refused }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function whyNoDefinition(raw: JsonObject, key: string): string | undefined {
  const { length } = JSON.stringify(raw)
  if (length > mostDefinitionBytes) return `its definition has ${length} bytes, more than ${mostDefinitionBytes}`
  if (!isShallow(raw)) return 'its definition is nested too deeply'
  return whyNoName(text(raw.name)) ?? whyNoName(key)
}

/** Tells whether a value is nested so little that code may read it by recursion. */
export function isShallow(value: unknown, levels = 64): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1))
}

function whyNoName(name: string): string | undefined {
  if (name === '') return 'it has no name'
  if (name.length > mostNameLength) return `its name has ${name.length} characters`
  return visible(name) === name ? undefined : 'its name has hidden or control characters'
}

export function toolOf({ name, title, description, inputSchema, outputSchema, annotations }: JsonObject): McpToolDefinition | string {
  if (!isObject(inputSchema) || inputSchema.type !== 'object') return 'its inputSchema describes no object'
  const output = isJsonObject(outputSchema) ? { outputSchema } : {}
  const why = whyNoSchema('inputSchema', inputSchema) ?? whyNoSchema('outputSchema', output.outputSchema)
  if (why !== undefined) return why
  const more = { ...(typeof title === 'string' && { title }), ...(isJsonObject(annotations) && { annotations }) }
  return { name: text(name), description: text(description), inputSchema: inputSchema as Schema, ...output, ...more }
}

export function resourceOf({ uri, uriTemplate, name, description, mimeType }: JsonObject): McpResourceDefinition {
  const type = typeof mimeType === 'string' ? { mimeType } : {}
  return { uri: text(uri ?? uriTemplate), name: text(name), description: text(description), ...type, isTemplate: uri === undefined }
}

export function promptOf({ name, description, arguments: given }: JsonObject): McpPromptDefinition | string {
  const wanted = (Array.isArray(given) ? given : []).filter(isObject)
  const words = wanted.map((one) => ({ name: text(one.name), description: text(one.description), required: one.required === true }))
  if (words.some((one) => whyNoName(one.name) !== undefined)) return 'the name of an argument is missing, or has hidden characters'
  return { name: text(name), description: text(description), arguments: words }
}

const [mostDepth, mostParts] = [32, 10_000]
/** Their values are data, in which a "$ref" means nothing. */
const dataKeys = new Set(['const', 'enum', 'default', 'examples'])

/** A schema that leads back to itself, outside, or to ever more parts would cost whoever reads or checks it without end. */
function whyNoSchema(name: string, schema: object | undefined): string | undefined {
  let parts = 0
  function visit(value: unknown, depth: number, refs: readonly string[]): string | undefined {
    if (typeof value !== 'object' || value === null) return undefined
    if (depth > mostDepth) return `is nested more than ${mostDepth} levels deep`
    if (++parts > mostParts) return `unfolds to more than ${mostParts} parts`
    for (const [key, member] of Object.entries(value)) {
      if (dataKeys.has(key)) continue
      const isReference = /^\$(dynamic|recursive)?[rR]ef$/.test(key) && typeof member === 'string'
      const why = isReference ? follow(member, depth, refs) : visit(member, depth + 1, refs)
      if (why !== undefined) return why
    }
  }
  function follow(ref: string, depth: number, refs: readonly string[]): string | undefined {
    if (refs.includes(ref)) return `refers to itself through ${quote(ref)}`
    const path = ref.startsWith('#') ? ref.slice(1).split('/').slice(1) : ['\0']
    const target = path.reduce<unknown>(
      (at, key) => (isObject(at) ? at[key.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
      schema,
    )
    return target === undefined ? `refers to ${quote(ref)}, which it does not contain` : visit(target, depth + 1, [...refs, ref])
  }
  const why = visit(schema, 0, ['#'])
  return why === undefined ? undefined : `its ${name} ${why}`
}
