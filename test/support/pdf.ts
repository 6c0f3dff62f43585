/** Writes small PDF files for the tests, sound ones and others. */

/** Draws a text in lines of 80 letters, and a line below it. A reader leaves out what lies beside the page. */
export function show(text: string): string {
  const lines = [...(text.match(/.{1,80}/g) ?? []), 'second line']
  return text === '' ? '' : `BT /F1 6 Tf 72 740 Td ${lines.map((line) => `(${line}) Tj 0 -8 Td`).join(' ')} ET `
}

export const pdfOf = (pages: readonly string[]) => buildPdf(pages.map(show))

/** `instead` replaces objects by their number (2 is the tree of pages, 6 the form X), `filter` is that of each page's content. */
export function buildPdf(
  pages: readonly (string | Uint8Array)[],
  instead: { readonly [number: number]: string } = {},
  trailer = '',
  filter = '',
): Buffer {
  const kids = pages.map((_, at) => `${10 + 2 * at} 0 R`).join(' ')
  const resources = '/Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >> /MediaBox [0 0 612 792]'
  const objects: { [number: number]: string | Buffer } = {
    1: '<< /Type /Catalog /Pages 2 0 R >>',
    2: `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    3: '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...instead,
  }
  pages.forEach((content, at) => {
    const bytes = Buffer.from(content)
    objects[10 + 2 * at] = `<< /Type /Page /Parent 2 0 R ${resources} /Contents ${11 + 2 * at} 0 R >>`
    const head = Buffer.from(`<< /Length ${bytes.length} ${filter} >>\nstream\n`)
    objects[11 + 2 * at] = Buffer.concat([head, bytes, Buffer.from('\nendstream')])
  })
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n')]
  const rows: string[] = []
  for (const [number, body] of Object.entries(objects)) {
    const offset = parts.reduce((sum, part) => sum + part.length, 0)
    rows.push(`${number} 1\n${String(offset).padStart(10, '0')} 00000 n \n`)
    parts.push(Buffer.from(`${number} 0 obj\n`), Buffer.from(body), Buffer.from('\nendobj\n'))
  }
  const start = parts.reduce((sum, part) => sum + part.length, 0)
  const size = 12 + 2 * pages.length
  const table = `xref\n0 1\n0000000000 65535 f \n${rows.join('')}`
  parts.push(Buffer.from(`${table}trailer << /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF`))
  return Buffer.concat(parts)
}
