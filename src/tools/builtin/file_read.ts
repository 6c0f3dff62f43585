/** Defines the tool file_read, which reads a text file or a range of its lines. */

import { grouped } from '../../kit/text.ts'
import type { Schema } from '../../runtime/port.ts'
import type { TextRead, Workspace } from '../../workspace/contract.ts'
import { done, refused, type ToolKind, textOr } from '../tool-kind.ts'

const FOOTER_ROOM = 512

type Deps = { readonly files: Pick<Workspace, 'readText'>; readonly shownBytes: () => number }

const parameters = {
  type: 'object',
  properties: { path: { type: 'string' }, offset: { type: 'integer', minimum: 1 }, limit: { type: 'integer', minimum: 1 } },
  required: ['path'],
  additionalProperties: false,
} as const satisfies Schema

export const fileRead = {
  name: 'file_read',
  description: 'Read a text file; offset: first line, limit: number of lines.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'read' }],
  async run({ path, offset = 1, limit }, _context, { files, shownBytes }) {
    const maxBytes = Math.max(256, shownBytes() - FOOTER_ROOM)
    const page = files.readText(path, { offset, limit, maxBytes })
    if (!page.ok) return refused(page)
    return done(page.size === 0 ? '(empty file)' : page.text + footer(page), {
      lines: page.lastLine - page.firstLine + 1,
      bytes: page.size,
      seen: [...page.seen],
    })
  },
} as const satisfies ToolKind<typeof parameters, Deps>

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
