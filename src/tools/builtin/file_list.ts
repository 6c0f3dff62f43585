/** Defines the tool file_list, which lists the entries of a folder, one per line. */

import { objectSchema } from '../../kit/json.ts'
import type { FolderListing, ListEntry, Workspace } from '../../workspace/contract.ts'
import { done, refused, type ToolKind, textOr } from '../tool-kind.ts'

const MAX_ENTRIES = 500

const parameters = objectSchema({ path: { type: 'string' }, depth: { type: 'integer', minimum: 1, maximum: 9 } })

export const fileList = {
  name: 'file_list',
  description: 'List a folder.',
  parameters,
  risk: 'low',
  timeoutMs: 30_000,
  idempotent: true,
  touches: ({ path }) => [{ kind: 'path', path: textOr(path, '.'), access: 'read' }],
  async run({ path = '.', depth = 1 }, _context, { files }) {
    const listing = files.list(path, { depth, maxEntries: MAX_ENTRIES })
    if (!listing.ok) return refused(listing)
    return done(shown(listing), { entries: listing.total })
  },
} as const satisfies ToolKind<typeof parameters, { readonly files: Pick<Workspace, 'list'> }>

function shown({ entries, total, complete }: FolderListing): string {
  if (total === 0) return '(empty folder)'
  const rest = total - entries.length
  const notice = rest > 0 ? `\n[… ${rest} of ${total} entries not shown; list a folder below, or search …]` : ''
  const unseen = complete ? '' : '\n[some folders could not be entered, or there is too much to count]'
  return entries.map(line).join('\n') + notice + unseen
}

/** Shows a name with control characters in JSON quotes, because it could otherwise forge a line. */
function line({ path, type, size }: ListEntry): string {
  const name = /[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path
  if (type === 'directory') return `${name}/`
  if (type === 'file') return size === undefined ? name : `${name} (${size} bytes)`
  return `${name} (${type === 'link' ? 'symbolic link' : 'special file'})`
}
