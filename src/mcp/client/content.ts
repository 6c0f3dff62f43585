/** Turns what a server answers into text and pictures, bounded and checked by content, and checks it against what the server promised. */

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import { capText } from '../../kit/content/output-limit.ts'
import { pictureKind } from '../../kit/content/picture-kind.ts'
import { isObject, type Json, type JsonObject } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { Picture } from '../../runtime/port.ts'
import type { McpContent, McpFailure } from '../contract.ts'

const [mostPictures, mostPictureBytes] = [8, 5 * 1024 * 1024]

/** `notes` are ours: what happened besides. */
export type Blocks = {
  readonly blocks: readonly unknown[]
  readonly structured?: unknown
  readonly isError?: unknown
  readonly notes?: readonly string[]
}

export function contentOf({ blocks, structured, isError, notes = [] }: Blocks, maxBytes: number): McpContent {
  const pictures: Picture[] = []
  const texts = blocks.map((block) => textOf(isObject(block) ? block : {}, pictures))
  const json = structured === undefined ? '' : JSON.stringify(structured)
  if (texts.length === 0) texts.push(json)
  return {
    text: capText([...texts, ...notes.map((note) => `[${note}]`)].join('\n'), maxBytes),
    pictures,
    ...(json !== '' && json.length <= maxBytes && { structured: structured as Json }),
    isError: isError === true,
  }
}

export function failedContent(failed: McpFailure): McpContent {
  return { text: failed.why, pictures: [], isError: true, failed }
}

/** Returns the text of one block, and collects its picture. */
function textOf(block: { readonly [key: string]: unknown }, pictures: Picture[]): string {
  const { type, text, data, blob, mimeType, uri, resource, content, role } = block
  if (content !== undefined && typeof role === 'string') return `${role}: ${textOf(isObject(content) ? content : {}, pictures)}`
  if (isObject(resource)) return textOf(resource, pictures)
  if (type === 'resource_link') return `[a resource: ${quote(uri)}]`
  if (typeof text === 'string') return text
  const base64 = typeof data === 'string' ? data : blob
  if (typeof base64 !== 'string') return `[a block of the unknown type ${quote(type)} is left out]`
  const kind = pictureKind(Buffer.from(base64.slice(0, 64), 'base64'))
  const bytes = Math.floor((base64.length * 3) / 4)
  if (kind === undefined)
    return `[${bytes} bytes of ${quote(mimeType ?? 'unknown type')} are left out: they are no JPEG, PNG or WebP picture]`
  if (pictures.length >= mostPictures || bytes > mostPictureBytes)
    return `[a picture of ${bytes} bytes is left out: at most ${mostPictures} of ${mostPictureBytes} bytes are taken]`
  pictures.push({ type: kind.type, base64: Buffer.from(base64, 'base64').toString('base64') })
  return `[picture ${pictures.length}: ${kind.type}]`
}

/** Returns a function that says why a result breaks the promise of its tool. A schema is compiled once. */
export function createOutputCheck(): (schema: JsonObject, result: { readonly [key: string]: unknown }) => string | undefined {
  const validator = new AjvJsonSchemaValidator()
  const compiled = new WeakMap<JsonObject, ReturnType<typeof validator.getValidator>>()
  const compile = (schema: JsonObject) => {
    const check = validator.getValidator(withoutSlowRules(schema) as JsonObject)
    compiled.set(schema, check)
    return check
  }
  return (schema, { structuredContent, isError }) => {
    if (isError === true) return undefined
    if (structuredContent === undefined) return 'it promised structured content and sent none'
    try {
      const outcome = (compiled.get(schema) ?? compile(schema))(structuredContent)
      return outcome.valid ? undefined : `its result does not fit its own outputSchema: ${outcome.errorMessage}`
    } catch (error) {
      return `its outputSchema is not usable: ${error instanceof Error ? error.message : String(error)}`
    }
  }
}

/** A server chooses the schema and the data: a regular expression, or a search for equals, could then take as long as it likes. */
function withoutSlowRules(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutSlowRules)
  if (!isObject(schema)) return schema
  const patterns = isObject(schema.patternProperties)
  const rules = Object.entries(schema).flatMap(([key, value]) => {
    // A property may have the name of a rule: its value is a schema then.
    if (typeof value !== 'object' && slowRules.has(key)) return []
    if (patterns && (key === 'patternProperties' || key === 'additionalProperties')) return []
    return [[key, key === 'const' || key === 'enum' ? value : withoutSlowRules(value)]]
  })
  return Object.fromEntries(rules)
}

const slowRules = new Set(['pattern', 'uniqueItems', 'format'])
