/** Runs in a process of its own: reads a PDF from standard input, and prints the text of some of its pages as JSON. */

import { readFileSync } from 'node:fs'

/** Counts pages from 1; the texts, and a line around each, have at most `maxBytes` bytes of UTF-8. */
export type PdfRange = { readonly offset: number; readonly limit: number; readonly maxBytes: number }

/** `isCut`: the page alone is longer than the limit. `total` is the number of pages of the whole file. */
export type PdfPages =
  | { readonly total: number; readonly pages: readonly { readonly page: number; readonly text: string; readonly isCut?: true }[] }
  | { readonly failure: string }

const lineBytes = 64

type Library = Pick<typeof import('unpdf'), 'getResolvedPDFJS'>

/** @param range a PdfRange as JSON. @returns PdfPages as JSON; a file that cannot be read is a failure */
export async function pdfText(library: Library, range: string): Promise<string> {
  try {
    return JSON.stringify(await pagesOf(library, JSON.parse(range)))
  } catch (error) {
    const { name, message } = Object(error)
    const why = name === 'PasswordException' ? 'it is encrypted and needs a password; remove the password first' : undefined
    return JSON.stringify({ failure: why ?? `it cannot be read: ${String(message ?? error).slice(0, 300)}` } satisfies PdfPages)
  }
}

async function pagesOf({ getResolvedPDFJS }: Library, { offset, limit, maxBytes }: PdfRange): Promise<PdfPages> {
  const { getDocument } = await getResolvedPDFJS()
  // Nothing of a file is run or drawn, and nothing is fetched.
  const quiet = { isEvalSupported: false, disableFontFace: true, useSystemFonts: false, enableXfa: false, verbosity: 0 }
  const file = await getDocument({ data: new Uint8Array(readFileSync(0)), ...quiet }).promise
  const total = file.numPages
  if (offset > total) return { failure: `it has ${total} pages; page ${offset} does not exist` }
  const pages: { page: number; text: string; isCut?: true }[] = []
  for (let [page, room] = [offset, maxBytes]; page <= Math.min(total, offset + limit - 1); page++) {
    const { items } = await (await file.getPage(page)).getTextContent()
    const text = items.map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '')).join('')
    room -= Buffer.byteLength(text) + lineBytes
    if (room < 0 && pages.length === 0)
      pages.push({ page, text: new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes)), isCut: true })
    if (room < 0) break
    pages.push({ page, text: text.trim() })
  }
  return { total, pages }
}
