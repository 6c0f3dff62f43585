/** file_write: a whole text file, created with its folders or replaced at once. */

import type { Tool } from '../../runtime/port.ts'
import { done, refused, text, textOr } from '../input.ts'
import { specs } from '../specs.ts'
import type { Files } from './files.ts'

export function fileWriteTool({ files }: { readonly files: Pick<Files, 'writeText'> }): Tool {
  return {
    ...specs.file_write,
    touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'write' }],
    async invoke(input) {
      const written = files.writeText(text(input, 'path'), text(input, 'content'))
      if (!written.ok) return refused(written)
      const { path, bytes, created } = written
      return done(`${created ? 'created' : 'replaced'} ${path} (${bytes} bytes)`, { bytes, created })
    },
  }
}
