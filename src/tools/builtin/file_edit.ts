/** file_edit: one exact, unique piece of a text file is replaced. */

import type { Tool } from '../../runtime/port.ts'
import { done, refused, text, textOr } from '../input.ts'
import { specs } from '../specs.ts'
import type { Files } from './files.ts'

export function fileEditTool({ files }: { readonly files: Pick<Files, 'editText'> }): Tool {
  return {
    ...specs.file_edit,
    touches: ({ path }) => [
      { kind: 'path', path: textOr(path, ''), access: 'read' },
      { kind: 'path', path: textOr(path, ''), access: 'write' },
    ],
    async invoke(input) {
      const edited = files.editText(text(input, 'path'), { find: text(input, 'old'), put: text(input, 'new') })
      if (!edited.ok) return refused(edited)
      const note = edited.note === undefined ? '' : ` (${edited.note})`
      return done(`edited ${edited.path} at line ${edited.line}${note}`, { line: edited.line })
    },
  }
}
