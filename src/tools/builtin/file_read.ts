/** Defines the tool file_read, which reads a range of lines of a text, a picture, or pages of a PDF. */

import { pictureTokens } from '../../kit/content/tokens.ts'
import { objectSchema } from '../../kit/json.ts'
import { grouped, quote } from '../../kit/text.ts'
import type { ToolContext, ToolResult } from '../../runtime/port.ts'
import type { FileRefusal, TextRead, Workspace } from '../../workspace/contract.ts'
import type { PdfDeps } from '../pdf-reader.ts'
import { done, fail, refused, type ToolKind, textOr } from '../tool-kind.ts'
import { mostPages, pdfExtract } from './pdf_extract.ts'

const FOOTER_ROOM = 512
/** As many bytes of a result count as one token. */
const bytesOfToken = 3

type Deps = Omit<PdfDeps, 'files'> & { readonly files: Pick<Workspace, 'root' | 'readText' | 'readBytes'> }

const parameters = objectSchema(
  { path: { type: 'string' }, offset: { type: 'integer', minimum: 1 }, limit: { type: 'integer', minimum: 1 }, pages: { type: 'string' } },
  'path',
)

export const fileRead = {
  name: 'file_read',
  description: 'Read a text file (offset: first line, limit: lines), a picture or a PDF (pages: 1-3).',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'read' }],
  async run({ path, offset = 1, limit, pages }, context, deps) {
    if (pages !== undefined) return readPdf(path, pages, context, deps)
    const { files, shownBytes } = deps
    const maxBytes = Math.max(256, shownBytes() - FOOTER_ROOM)
    const page = files.readText(path, { offset, limit, maxBytes })
    if (!page.ok) return (await unreadable(page, path, context, deps)) ?? refused(page)
    return done(page.size === 0 ? '(empty file)' : page.text + footer(page), {
      lines: page.lastLine - page.firstLine + 1,
      bytes: page.size,
      seen: [...page.seen],
    })
  },
} as const satisfies ToolKind<typeof parameters, Deps>

function readPdf(path: string, pages: string, context: ToolContext, deps: Deps) {
  const [, first = '', last = first] = /^([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?$/.exec(pages.trim()) ?? []
  const limit = Number(last) - Number(first) + 1
  if (first === '' || limit < 1) return fail(`pages: ${quote(pages)} names no pages; write "3" or "1-3"`)
  return pdfExtract.run({ path, offset: Number(first), limit: Math.min(limit, mostPages) }, context, deps)
}

/** Reads what is not a text: a picture, for a model that sees, or the first pages of a PDF. @returns undefined for anything else */
async function unreadable({ denied }: FileRefusal, path: string, context: ToolContext, deps: Deps): Promise<ToolResult | undefined> {
  const { mostFileBytes, pictureFrom } = await import('../fit-picture.ts')
  const file = denied === undefined ? deps.files.readBytes(path, { maxBytes: mostFileBytes }) : undefined
  if (!file?.ok) return undefined
  const { bytes } = file
  if (Buffer.from(bytes.subarray(0, 1_024)).includes('%PDF-')) return pdfExtract.run({ path }, context, deps)
  const fitted = await pictureFrom(bytes)
  if (!fitted.ok) return fitted.isPicture ? fail(`${quote(path)}: ${fitted.why}`) : undefined
  const about = `[a picture, ${fitted.picture.type}, ${grouped(bytes.length)} bytes`
  if (deps.shownBytes() >= pictureTokens * bytesOfToken) return { ...done(`${about}]`), pictures: [fitted.picture] }
  return done(`${about}; the window of the model has no room for it: ask the person to attach it to a message]`)
}

function footer(page: TextRead): string {
  const { text, firstLine, lastLine, totalLines, size, more, cutLine, invalid } = page
  const notes = [
    ...(more || firstLine > 1
      ? [`lines ${firstLine}–${lastLine} of ${totalLines === undefined ? `a file of ${grouped(size)} bytes` : totalLines}`]
      : []),
    ...(cutLine ? [`line ${lastLine} is longer than fits and was cut`] : []),
    ...(more && !(cutLine && lastLine === totalLines) ? [`continue with offset ${lastLine + 1}`] : []),
    ...(invalid ? ['bytes that are not UTF-8 are shown as \ufffd'] : []),
  ]
  return notes.length === 0 ? '' : `${text.endsWith('\n') ? '' : '\n'}[${notes.join('; ')}]`
}
