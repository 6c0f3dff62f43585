/** file_list: the entries of a folder, a line each. */

import type { Tool } from '../../runtime/port.ts'
import { count, done, refused, text, textOr } from '../input.ts'
import { specs } from '../specs.ts'
import type { Entry, Files, Listing } from './files.ts'

const MAX_ENTRIES = 500

export function fileListTool({ files }: { readonly files: Pick<Files, 'list'> }): Tool {
  return {
    ...specs.file_list,
    touches: ({ path }) => [{ kind: 'path', path: textOr(path, '.'), access: 'read' }],
    async invoke(input) {
      const listing = files.list(text(input, 'path', '.'), { depth: count(input, 'depth', 1), maxEntries: MAX_ENTRIES })
      if (!listing.ok) return refused(listing)
      return done(shown(listing), { entries: listing.total })
    },
  }
}

function shown({ entries, total, complete }: Listing): string {
  if (total === 0) return '(empty folder)'
  const rest = total - entries.length
  const notice = rest > 0 ? `\n[… ${rest} of ${total} entries not shown; list a folder below, or search …]` : ''
  const unseen = complete ? '' : '\n[some folders could not be entered, or there is too much to count]'
  return entries.map(line).join('\n') + notice + unseen
}

/** A name with control characters is shown in JSON quotes, or it could forge a line. */
function line({ path, type, size }: Entry): string {
  const name = /[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path
  if (type === 'directory') return `${name}/`
  if (type === 'file') return size === undefined ? name : `${name} (${size} bytes)`
  return `${name} (${type === 'link' ? 'symbolic link' : 'special file'})`
}
