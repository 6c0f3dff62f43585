/** Defines the tool file_write, which creates a text file with its folders, or replaces the file atomically. */

import { objectSchema } from '../../kit/json.ts'
import type { Workspace } from '../../workspace/contract.ts'
import { done, refused, type ToolKind, textOr } from '../tool-kind.ts'

const parameters = objectSchema({ path: { type: 'string' }, content: { type: 'string' } }, 'path', 'content')

export const fileWrite = {
  name: 'file_write',
  description: 'Create or replace a text file.',
  parameters,
  risk: 'medium',
  timeoutMs: 30_000,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'write' }],
  async run({ path, content }, { callId }, { files }) {
    const written = files.writeText(path, content, { call: callId, tool: 'file_write' })
    if (!written.ok) return refused(written)
    const { bytes, created, seen, note } = written
    return done(`${created ? 'created' : 'replaced'} ${written.path} (${note})`, { bytes, created, seen: [...seen] })
  },
} as const satisfies ToolKind<typeof parameters, { readonly files: Pick<Workspace, 'writeText'> }>
