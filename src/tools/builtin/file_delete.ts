/** Defines the tool file_delete, which deletes a file or folder so that a person can undo it. */

import { objectSchema } from '../../kit/json.ts'
import { count } from '../../kit/text.ts'
import type { Workspace } from '../../workspace/contract.ts'
import { done, refused, type ToolKind, textOr } from '../tool-kind.ts'

const parameters = objectSchema({ path: { type: 'string' }, recursive: { type: 'boolean' } }, 'path')

export const fileDelete = {
  name: 'file_delete',
  description: 'Delete a file or empty folder, or with recursive a whole one.',
  parameters,
  risk: 'medium',
  timeoutMs: 30_000,
  idempotent: false,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'write' }],
  async run({ path, recursive = false }, { callId }, { files }) {
    const deleted = await files.delete(path, { recursive, by: { call: callId, tool: 'file_delete' } })
    if (!deleted.ok) return refused(deleted)
    const { files: deletedFiles, folders } = deleted
    const what = [deletedFiles > 0 && count(deletedFiles, 'file'), folders > 0 && count(folders, 'folder')]
    return done(`deleted ${deleted.path} (${what.filter(Boolean).join(', ')})`, { files: deletedFiles, folders })
  },
} as const satisfies ToolKind<typeof parameters, { readonly files: Pick<Workspace, 'delete'> }>
