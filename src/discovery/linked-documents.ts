/** Follows the links of instruction files and skills to documents of the same folder, so that they can be found by what they say. */

import { posix } from 'node:path'
import { unescape as unescaped } from 'node:querystring'
import { extractMarkdownLinks, type MarkdownLink } from './markdown-links.ts'
import { findFiles, type TextFiles } from './text-files.ts'

/** `path` and `source`, the file that has the link, are relative to the root; `text` is the first 64 KiB. */
export type LinkedDocument = MarkdownLink & Readonly<Record<'path' | 'source' | 'headings' | 'text', string>>

const [maxDocuments, maxBytes] = [200, 65_536]

/**
 * Reads each document once, also when documents link to each other, and at most 200; names what is missing, outside, too long or not text.
 * `again` are further links to what was found.
 */
export function linkedDocuments(files: TextFiles, starts: readonly { readonly path: string; readonly text: string }[]) {
  const [found, again, notices]: [LinkedDocument[], LinkedDocument[], string[]] = [[], [], []]
  const seen = new Set(starts.map(({ path }) => path))
  const most = seen.size + maxDocuments
  const queue = [...starts]
  for (const { path: source, text: linking } of queue)
    for (const link of extractMarkdownLinks(linking, { pathPattern: /\.(md|mdx|markdown|txt)([?#]|$)/i })) {
      const path = targetOf(source, link.relativePath)
      const known = found.find((document) => document.path === path)
      if (known && source !== path) again.push({ ...known, ...link, source })
      if (seen.has(path) || seen.size === most) continue
      seen.add(path)
      const read = files.readText(path, { maxBytes })
      const why = !read.ok ? read.message : read.more ? `only the first ${maxBytes} of ${read.size} bytes can be found` : undefined
      if (why !== undefined) notices.push(`${source}:${link.lineNumber}: ${path}: ${why}`)
      if (!read.ok) continue
      const headings = [...read.text.matchAll(/^#{1,6}\s+(.+)$/gm)].map(([, heading]) => heading).join('. ')
      found.push({ ...link, path, source, headings, text: read.text })
      queue.push({ path, text: read.text })
    }
  if (seen.size === most) notices.push(`only the first ${maxDocuments} links are followed`)
  return { found, again, notices }
}

type Reading = { readonly names: readonly string[]; readonly maxBytes: number }

/** Reads the first of these files in each folder below a root, and the documents that they link to. */
export function readRules(root: string, files: TextFiles, { names, maxBytes: most }: Reading) {
  const { found, notices } = findFiles(root, { names, within: root })
  const rules = found.flatMap((path) => {
    const read = files.readText(path, { maxBytes: most })
    if (!read.ok) notices.push(read.message)
    return read.ok ? [{ ...read, path }] : []
  })
  const linked = linkedDocuments(files, rules)
  return { ...linked, rules, notices: [...notices, ...linked.notices] }
}

/** Returns what a document, or an instruction file itself, is found by. */
export function documentEntry({ path, text, displayText = '', headings = '' }: Partial<LinkedDocument> & { readonly path: string }) {
  const description = displayText + (headings === '' ? ` ${text?.slice(0, 300).replace(/\s+/g, ' ')}` : `. ${headings}`)
  return { kind: 'rule', source: 'project', name: path, description, context: text ?? '' }
}

/** Resolves a link as a page does: `/docs/a.md` starts at the root. */
function targetOf(source: string, link: string): string {
  const path = unescaped(link.replace(/[?#].*$/s, ''))
  return posix.normalize(path.startsWith('/') ? `.${path}` : posix.join(posix.dirname(source), path))
}
