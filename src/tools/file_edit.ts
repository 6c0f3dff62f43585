/** file_edit: one exact, unique piece of a text file is replaced. */

import type { Tool } from '../runtime/port.ts'
import type { Files } from './files.ts'
import { done, refused, text, textOr } from './input.ts'

export function fileEditTool({ files }: { readonly files: Pick<Files, 'editText'> }): Tool {
  return {
    name: 'file_edit',
    description: 'Replace text in a file; old must match exactly and once.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, old: { type: 'string' }, new: { type: 'string' } },
      required: ['path', 'old', 'new'],
      additionalProperties: false,
    },
    risk: 'medium',
    timeoutMs: 30_000,
    idempotent: false,
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
