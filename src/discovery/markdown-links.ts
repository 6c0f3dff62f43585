/** Extracts the links of Markdown text, and tells what a link leads to. */

/** `relativePath` is as it is written, and the caller resolves it; lines count from 1. */
export type MarkdownLink = { readonly displayText: string; readonly relativePath: string; readonly lineNumber: number }

/** `extensions` have their dot: `['.md']`. */
export type ExtractLinksOptions = {
  readonly pathPattern?: RegExp
  readonly extensions?: readonly string[]
  readonly includeExternal?: boolean
}

const [maxLine, maxLinks] = [65_536, 10_000]

/** Returns `[text](path)` and `[text](<path> "title")` in order; no pictures, and nothing from code. */
export function extractMarkdownLinks(content: string, options: ExtractLinksOptions = {}): MarkdownLink[] {
  const { pathPattern, extensions = [], includeExternal = false } = options
  const links: MarkdownLink[] = []
  let fence = ''
  for (const [at, line] of content.split('\n').entries()) {
    const [, mark = ''] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? []
    if (mark !== '' && (fence === '' || mark.startsWith(fence))) fence = fence === '' ? mark : ''
    if (fence !== '' || mark !== '' || links.length >= maxLinks) continue
    const text = line.slice(0, maxLine).replaceAll(/`+[^`]*`+/g, (code) => (code.includes('](') ? ' '.repeat(code.length) : code))
    for (const link of text.matchAll(
      /(?<!!)\[((?:[^[\]]|\[[^[\]]*\]){1,500})\]\((?:<([^<>]*)>|([^\s()<>]+))(?:\s+["'][^"']*["'])?\s*\)/g,
    )) {
      const [, displayText = '', quoted, relativePath = quoted ?? ''] = link
      const isWanted = (includeExternal || !isExternalLink(relativePath)) && (!pathPattern || relativePath.search(pathPattern) >= 0)
      if (isWanted && (extensions.length === 0 || extensions.includes(getExtension(relativePath))))
        links.push({ displayText, relativePath, lineNumber: at + 1 })
    }
  }
  return links
}

/** Tells whether a link leaves the file system: `https://`, `mailto:`, `//host`. */
export function isExternalLink(path: string): boolean {
  return /^\s*([a-z][a-z0-9+.-]+:|\/\/)/i.test(path)
}

/** Returns the extension with its dot, without query and fragment; '' when there is none. */
export function getExtension(path: string): string {
  return /\.[^./\\]*$/.exec(path.replace(/[?#].*$/s, ''))?.[0] ?? ''
}
