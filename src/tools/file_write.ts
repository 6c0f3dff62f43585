/** file_write: a whole text file, created with its folders or replaced at once. */

import type { Tool } from '../runtime/port.ts'
import type { Files } from './files.ts'
import { done, refused, text, textOr } from './input.ts'

export function fileWriteTool({ files }: { readonly files: Pick<Files, 'writeText'> }): Tool {
  return {
    name: 'file_write',
    description: 'Create or replace a text file.',
    parameters: {
      type: 'object',
      properties: { path: { type: 'string' }, content: { type: 'string' } },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    risk: 'medium',
    timeoutMs: 30_000,
    idempotent: true,
    touches: ({ path }) => [{ kind: 'path', path: textOr(path, ''), access: 'write' }],
    async invoke(input) {
      const written = files.writeText(text(input, 'path'), text(input, 'content'))
      if (!written.ok) return refused(written)
      const { path, bytes, created } = written
      return done(`${created ? 'created' : 'replaced'} ${path} (${bytes} bytes)`, { bytes, created })
    },
  }
}
