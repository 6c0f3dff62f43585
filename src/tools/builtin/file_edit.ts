/** Defines the tool file_edit, which replaces one exact, unique piece of a text file. */

import { objectSchema } from '../../kit/json.ts'
import type { Workspace } from '../../workspace/contract.ts'
import { done, refused, type ToolKind, textOr } from '../tool-kind.ts'

const parameters = objectSchema({ path: { type: 'string' }, old: { type: 'string' }, new: { type: 'string' } }, 'path', 'old', 'new')

export const fileEdit = {
  name: 'file_edit',
  description: 'Replace text in a file; old must match exactly and once.',
  parameters,
  risk: 'medium',
  timeoutMs: 30_000,
  idempotent: false,
  touches: ({ path }) => [
    { kind: 'path', path: textOr(path, ''), access: 'read' },
    { kind: 'path', path: textOr(path, ''), access: 'write' },
  ],
  async run({ path, old, new: put }, { callId }, { files }) {
    const edited = files.editText(path, { find: old, put }, { call: callId, tool: 'file_edit' })
    if (!edited.ok) return refused(edited)
    const note = edited.note === undefined ? '' : ` (${edited.note})`
    return done(`edited ${edited.path} at line ${edited.line}${note}`, { line: edited.line, seen: [...edited.seen] })
  },
} as const satisfies ToolKind<typeof parameters, { readonly files: Pick<Workspace, 'editText'> }>
