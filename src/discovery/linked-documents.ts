/** Follows the links of instruction files and skills to documents of the same folder, so that they can be found by what they say. */

import { posix } from 'node:path'
import { extractMarkdownLinks, getExtension, type MarkdownLink } from './markdown-links.ts'
import { findFiles, type TextFiles } from './text-files.ts'

/** `path` and `source`, the file that has the link, are relative to the root; `text` is the first 64 KiB. */
export type LinkedDocument = MarkdownLink & Readonly<Record<'path' | 'source' | 'headings' | 'text', string>>

const [maxDocuments, maxBytes, maxNotices] = [200, 65_536, 20]

/**
 * Reads each document once, also when documents link to each other; names what is missing, outside, too long or not text. `again` are further
 * links to what was found.
 */
export function linkedDocuments(files: TextFiles, starts: readonly { readonly path: string; readonly text: string }[]) {
  const [found, again, notices]: [LinkedDocument[], LinkedDocument[], string[]] = [[], [], []]
  const seen = new Set(starts.map(({ path }) => path))
  const queue = [...starts]
  for (const { path: source, text: linking } of queue)
    for (const link of extractMarkdownLinks(linking)) {
      const path = targetOf(source, link.relativePath)
      const known = found.find((document) => document.path === path)
      if (known && source !== path) again.push({ ...known, ...link, source })
      if (!/^\.(md|mdx|markdown|txt)$/i.test(getExtension(path)) || seen.has(path)) continue
      seen.add(path)
      const read = found.length < maxDocuments && !path.startsWith('../') ? files.readText(path, { maxBytes }) : undefined
      const text = read?.ok && !read.invalid ? read.text : undefined
      const why = read === undefined ? outside(path) : !read.ok ? read.message : read.invalid ? 'it is not valid UTF-8' : cutOf(read)
      if (why !== undefined) notices.push(`${source}:${link.lineNumber}: ${path}: ${why}`)
      if (text === undefined) continue
      const headings = [...text.matchAll(/^#{1,6}\s+(.+)$/gm)].map(([, heading]) => heading).join('. ')
      found.push({ ...link, path, source, headings, text })
      queue.push({ path, text })
    }
  const left = notices.length - maxNotices
  return { found, again, notices: left > 0 ? [...notices.slice(0, maxNotices), `${left} more links are left out`] : notices }
}

type Reading = { readonly names: readonly string[]; readonly maxBytes: number }

/** Reads the first of these files in each folder below a root, and the documents that they link to. */
export function readRules(root: string, files: TextFiles, { names, maxBytes: most }: Reading) {
  const { found, notices } = findFiles(root, { names, within: root })
  const rules = found.flatMap((path) => {
    const read = files.readText(path, { maxBytes: most })
    if (!read.ok || read.invalid) notices.push(read.ok ? `${path} is not valid UTF-8` : read.message)
    return read.ok && !read.invalid ? [{ ...read, path }] : []
  })
  const linked = linkedDocuments(files, rules)
  return { ...linked, rules, notices: [...notices, ...linked.notices] }
}

/** Returns what a document, or an instruction file itself, is found by. */
export function documentEntry({ path, text, displayText = '', headings = '' }: Partial<LinkedDocument> & { readonly path: string }) {
  const description = displayText + (headings === '' ? ` ${text?.slice(0, 300).replace(/\s+/g, ' ')}` : `. ${headings}`)
  return { kind: 'rule', source: 'project', name: path, description, context: text ?? '' }
}

function outside(path: string): string {
  return path.startsWith('../') ? 'it leads out of the folder' : `more than ${maxDocuments} documents are linked`
}

function cutOf({ more, size }: { readonly more: boolean; readonly size: number }): string | undefined {
  return more ? `only the first ${maxBytes} of ${size} bytes can be found` : undefined
}

/** Resolves a link as a page does: `/docs/a.md` starts at the root. */
function targetOf(source: string, link: string): string {
  const bare = link.replace(/[?#].*$/s, '').replaceAll(/(%[0-9a-f]{2})+/gi, decoded)
  return posix.normalize(bare.startsWith('/') ? bare.replace(/^\/+/, '') : posix.join(posix.dirname(source), bare))
}

function decoded(escaped: string): string {
  try {
    return decodeURIComponent(escaped)
  } catch {
    return escaped
  }
}
