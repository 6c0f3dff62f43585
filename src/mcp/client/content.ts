/** Turns what a server answers into text and pictures, bounded and checked by content, and checks it against what the server promised. */

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import { capText } from '../../kit/content/output-limit.ts'
import { pictureKind } from '../../kit/content/picture-kind.ts'
import { errorText } from '../../kit/errors.ts'
import { isObject, type Json, type JsonObject } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { Picture } from '../../runtime/port.ts'
import type { McpContent } from '../contract.ts'
import { isShallow } from './definitions.ts'

const [mostPictures, mostPictureBytes] = [8, 5 * 1024 * 1024]

export type RawAnswer = { readonly [key: string]: unknown }
/** `notes` are ours: what happened besides. */
type Answered = { readonly answer: RawAnswer; readonly member: string; readonly notes: readonly string[] }

export function contentOf({ answer, member, notes }: Answered, maxBytes: number): McpContent {
  const { [member]: blocks, structuredContent, isError } = answer
  const pictures: Picture[] = []
  const texts = (Array.isArray(blocks) ? blocks : []).map((block) => textOf(isObject(block) ? block : {}, pictures))
  const json = structuredContent === undefined ? '' : JSON.stringify(structuredContent)
  if (texts.length === 0) texts.push(json)
  return {
    text: capText([...texts, ...notes.map((note) => `[${note}]`)].join('\n'), maxBytes),
    pictures,
    ...(json !== '' && json.length <= maxBytes && isShallow(structuredContent) && { structured: structuredContent as Json }),
    isError: isError === true,
  }
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
    return `[${bytes} bytes of ${quote(mimeType ?? 'unknown type')} are left out: they are no JPEG, PNG, WebP or GIF picture]`
  if (pictures.length >= mostPictures || bytes > mostPictureBytes)
    return `[a picture of ${bytes} bytes is left out: at most ${mostPictures} of ${mostPictureBytes} bytes are taken]`
  pictures.push({ type: kind.type, base64: Buffer.from(base64, 'base64').toString('base64') })
  return `[picture ${pictures.length}: ${kind.type}]`
}

/**
 * Returns a function that says why a result breaks the promise of its tool. A schema is compiled once. A server chooses the schema and the
 * data, so rules that can take as long as it likes (regular expressions, a search for equals) are not checked, and their schema neither.
 */
export function createOutputCheck(): (schema: JsonObject, answer: RawAnswer) => string | undefined {
  const validator = new AjvJsonSchemaValidator()
  const compiled = new WeakMap<JsonObject, ReturnType<typeof compileSchema>>()
  return (schema, { structuredContent, isError }) => {
    if (isError === true) return undefined
    if (structuredContent === undefined) return 'it promised structured content and sent none'
    try {
      const known = compiled.get(schema)
      if (known === undefined && slowRules.test(JSON.stringify(schema))) return undefined
      const flawOf = known ?? compileSchema(schema, validator)
      compiled.set(schema, flawOf)
      const flaw = flawOf(structuredContent)
      return flaw === undefined ? undefined : `its result does not fit its own outputSchema: ${flaw}`
    } catch (error) {
      return `its outputSchema is not usable: ${errorText(error)}`
    }
  }
}

/**
 * Returns a function that says why a value does not fit: where in it (`data/items/0`), and what the schema wants there. The function throws
 * RangeError for a schema that refers to itself without end. @throws when the schema is not usable
 */
export function compileSchema(schema: JsonObject, validator = new AjvJsonSchemaValidator()): (value: unknown) => string | undefined {
  const validate = validator.getValidator(schema)
  return (value) => {
    const { valid, errorMessage } = validate(value)
    return valid ? undefined : (errorMessage ?? 'it does not fit')
  }
}

const slowRules = /"(pattern|patternProperties|uniqueItems)":/
