/** file_read: a text file, or a range of its lines. */

import { grouped } from '../../kit/count.ts'
import type { Tool } from '../../runtime/port.ts'
import { count, done, refused, text, textOr } from '../input.ts'
import { specs } from '../specs.ts'
import type { Files, Page } from './files.ts'

const FOOTER_ROOM = 512

type Deps = { readonly files: Pick<Files, 'readText'>; readonly maxOutputBytes: number }

export function fileReadTool({ files, maxOutputBytes }: Deps): Tool {
  return {
    ...specs.file_read,
    touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'read' }],
    async invoke(input) {
      const maxBytes = Math.max(256, maxOutputBytes - FOOTER_ROOM)
      const limit = input.limit === undefined ? undefined : count(input, 'limit', 1)
      const page = files.readText(text(input, 'path'), { offset: count(input, 'offset', 1), limit, maxBytes })
      if (!page.ok) return refused(page)
      return done(page.size === 0 ? '(empty file)' : page.text + footer(page), {
        lines: page.lastLine - page.firstLine + 1,
        bytes: page.size,
      })
    },
  }
}

function footer(page: Page): string {
  const { text, firstLine, lastLine, totalLines, size, more, cutLine, invalid } = page
  const notes = [
    ...(more || firstLine > 1
      ? [`lines ${firstLine}–${lastLine} of ${totalLines === undefined ? `a file of ${grouped(size)} bytes` : totalLines}`]
      : []),
    ...(cutLine ? [`line ${lastLine} is longer than fits and was cut`] : []),
    ...(more && !(cutLine && lastLine === totalLines) ? [`go on with offset ${lastLine + 1}`] : []),
    ...(invalid ? ['bytes that are not UTF-8 are shown as \ufffd'] : []),
  ]
  return notes.length === 0 ? '' : `${text.endsWith('\n') ? '' : '\n'}[${notes.join('; ')}]`
}
