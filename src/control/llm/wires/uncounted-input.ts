/** Refuses requests whose input is not in them: what only the vendor has or fetches cannot be counted beforehand. */

import { HttpError } from '../../../http/http-error.ts'
import { isObject } from '../../../kit/json.ts'
import { fieldsOf } from './counts.ts'
import type { Fields } from './wire.ts'

/** @throws HttpError 400 for a document that the request only names */
export function assertCountable(value: unknown): void {
  if (Array.isArray(value)) for (const item of value) assertCountable(item)
  if (!isObject(value)) return
  const name = nameOfDocument(value)
  if (name !== undefined)
    throw new HttpError(400, 'unsupported_parameter', `${name}: the document would be input that is not in the request; send its content`)
  for (const field of Object.values(value)) assertCountable(field)
}

/** A picture costs about as much wherever it comes from; a document may have a million tokens. */
function nameOfDocument(part: Fields): string | undefined {
  const { type, source, file } = part
  if (type === 'file' && isText(fieldsOf(file).file_id)) return 'file_id'
  if (type === 'input_file') return ['file_id', 'file_url'].find((name) => isText(part[name]))
  if (type === 'container_upload') return 'container_upload'
  const from = fieldsOf(source).type
  return type === 'document' && (from === 'file' || from === 'url') ? `source.type ${JSON.stringify(from)}` : undefined
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
