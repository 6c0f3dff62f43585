/** Defines the tool pdf_extract, which returns the text of a PDF by pages. A confined process reads the file, because a PDF may never end. */

import { objectSchema } from '../../kit/json.ts'
import { quote } from '../../kit/text.ts'
import type { PdfDeps } from '../pdf-reader.ts'
import { fail, recordSandbox, refused, type ToolKind, textOr } from '../tool-kind.ts'

const maxFileBytes = 64 * 1024 * 1024
const usualPages = 50
export const mostPages = 200

const parameters = objectSchema(
  { path: { type: 'string' }, offset: { type: 'integer', minimum: 1 }, limit: { type: 'integer', minimum: 1, maximum: mostPages } },
  'path',
)

export const pdfExtract = {
  name: 'pdf_extract',
  description: 'Read the text of a PDF; offset: first page, limit: number of pages.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'read' }],
  async run({ path, offset = 1, limit = usualPages }, context, deps) {
    const file = deps.files.readBytes(path, { maxBytes: maxFileBytes })
    if (!file.ok) return refused(file)
    const { readPages, shown } = await import('../pdf-reader.ts')
    return recordSandbox(deps.spawn, async (spawn) => {
      const read = await readPages({ ...deps, spawn }, file.bytes, { offset, limit }, context)
      return 'failure' in read ? fail(`${quote(path)}: ${read.failure}`) : shown(read)
    })
  },
} as const satisfies ToolKind<typeof parameters, PdfDeps>
