/** Defines the tool result_read, which reads an earlier result of this conversation that the request no longer has in full. */

import { objectSchema } from '../../kit/json.ts'
import { grouped } from '../../kit/text.ts'
import { done, fail, type ToolKind } from '../tool-kind.ts'

/** Returns the whole text of a result, or why there is none; without an id a list of the results, a line each. */
export type ReadResult = (
  id: string | undefined,
) => { readonly ok: true; readonly text: string } | { readonly ok: false; readonly message: string }

type Deps = { readonly result: ReadResult; readonly shownBytes: () => number }

const FOOTER_ROOM = 128

const parameters = objectSchema({ id: { type: 'string' }, offset: { type: 'integer', minimum: 0 } })

export const resultRead = {
  name: 'result_read',
  description: 'Read an earlier result that was cut or left out; id: as the notice says (none: list them), offset: first byte.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: () => [],
  async run({ id, offset = 0 }, _context, { result, shownBytes }) {
    const found = result(id)
    if (!found.ok) return fail(found.message)
    const bytes = new TextEncoder().encode(found.text)
    if (offset > 0 && offset >= bytes.length) return fail(`the result has ${bytes.length} bytes, so nothing begins at offset ${offset}`)
    const start = characterStart(bytes, offset)
    const end = pageEnd(bytes, start, Math.max(64, shownBytes() - FOOTER_ROOM))
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(start, end))
    if (start === 0 && end === bytes.length) return done(text === '' ? '(empty result)' : text)
    const more = end < bytes.length ? `; continue with offset ${end}` : ''
    return done(`${text}${text.endsWith('\n') ? '' : '\n'}[bytes ${start}–${end} of ${grouped(bytes.length)}${more}]`)
  },
} as const satisfies ToolKind<typeof parameters, Deps>

function characterStart(bytes: Uint8Array, at: number): number {
  let start = at
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1
  return start
}

/** Ends a page after a whole line if one ends in its second half, otherwise between two characters. */
function pageEnd(bytes: Uint8Array, start: number, most: number): number {
  if (start + most >= bytes.length) return bytes.length
  const line = bytes.lastIndexOf(10, start + most - 1)
  return line >= start + most / 2 ? line + 1 : Math.max(start + 1, characterStart(bytes, start + most))
}
