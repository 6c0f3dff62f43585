/** Tests pdf_extract with real files and the real process that reads them, without a sandbox; pdf-extract.test.ts confines it. */

import { describe, expect, test } from 'bun:test'
import { deflateSync } from 'node:zlib'
import { pdfExtract } from '../../src/tools/builtin/pdf_extract.ts'
import { context, createFolder } from '../../src/tools/fixture.ts'
import { fixedPath, type Spawn, type SpawnResult, spawnPlain } from '../../src/tools/process.ts'
import { toolFrom } from '../../src/tools/tool-kind.ts'
import { openWorkspace } from '../../src/workspace/workspace.ts'
import { buildPdf, pdfOf, show } from '../support/pdf.ts'

function stage(shownBytes = 10_000, spawn: Spawn = spawnPlain) {
  const folder = createFolder()
  const files = openWorkspace({
    root: folder.root,
    check: (path) => (path.endsWith('secret.pdf') ? { ok: false, rule: 'forbidden_paths', reason: 'secret' } : { ok: true }),
  })
  const tool = toolFrom(pdfExtract, { files, spawn, env: { PATH: fixedPath, HOME: '/' }, shownBytes: () => shownBytes })
  const read = async (pdf: Uint8Array | undefined, input: object = {}, signal = AbortSignal.timeout(30_000)) => {
    if (pdf) folder.put('a.pdf', pdf)
    const { success, output, error, deniedBy } = await tool.invoke({ path: 'a.pdf', ...input }, context({ signal }))
    return success ? output : (deniedBy ?? error ?? '')
  }
  return { read, folder, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

describe('refused with a sentence is', () => {
  test('a file that the rules forbid, one that is missing, and one that is too large', async () => {
    using at = stage()
    at.folder.put('secret.pdf', pdfOf(['Key']))
    expect(await at.read(undefined, { path: 'secret.pdf' })).toBe('forbidden_paths')
    expect(await at.read(undefined, { path: 'b.pdf' })).toContain('"b.pdf" does not exist')
    at.folder.put('large.pdf', new Uint8Array(64 * 1024 * 1024 + 1))
    expect(await at.read(undefined, { path: 'large.pdf' })).toContain('"large.pdf" is too large')
  })

  const encrypted = `/Encrypt << /Filter /Standard /V 1 /R 2 /O <${'41'.repeat(32)}> /U <${'42'.repeat(32)}> /P -4 >> /ID [<00> <00>]`
  const circle = { 2: '<< /Type /Pages /Kids [2 0 R] /Count 3 >>' }
  const bomb = deflateSync(deflateSync(Buffer.alloc(300_000_000, 'BT (x) Tj ET\n')))
  test.each([
    ['junk', Buffer.from('not a PDF'.repeat(100)), '"a.pdf": it cannot be read: Invalid PDF structure'],
    ['nothing', new Uint8Array(), '"a.pdf": it cannot be read: The PDF file is empty'],
    ['half a file', pdfOf(['Hello']).subarray(0, 300), '"a.pdf": it cannot be read: '],
    [
      'a tree of pages that is a circle',
      buildPdf([show('x')], circle),
      '"a.pdf": it cannot be read: Pages tree contains circular reference',
    ],
    ['an encrypted file', buildPdf([show('x')], {}, encrypted), '"a.pdf": it is encrypted and needs a password; remove the password first'],
    ['a bomb', buildPdf([bomb], {}, '', '/Filter [/FlateDecode /FlateDecode]'), '"a.pdf": it'],
  ])('%s', async (_, pdf, says) => {
    using at = stage()
    expect(await at.read(pdf)).toStartWith(says)
  })

  test('a page behind the last one', async () => {
    using at = stage()
    expect(await at.read(pdfOf(['One', 'Two']), { offset: 3 })).toBe('"a.pdf": it has 2 pages; page 3 does not exist')
  })

  test('a call that is cancelled while its reader runs', async () => {
    const stop = new AbortController()
    using at = stage(10_000, (plan) => {
      const { promise, resolve } = Promise.withResolvers<SpawnResult>()
      plan.signal.addEventListener('abort', () => resolve({ ok: true, code: null, signal: 'SIGTERM', leftBehind: false }))
      stop.abort()
      return promise
    })
    expect(await at.read(pdfOf(['Hello']), {}, stop.signal)).toBe('"a.pdf": the reader was stopped')
  })
})

test('the pages have their numbers and lines, and a picture is said', async () => {
  using at = stage()
  expect(await at.read(pdfOf(['One', 'Two', '']))).toBe(
    '[page 1]\nOne\nsecond line\n[page 2]\nTwo\nsecond line\n[page 3]\n(no text; perhaps a picture)\n[pages 1–3 of 3]',
  )
  expect(await at.read(undefined, { offset: 2, limit: 1 })).toBe('[page 2]\nTwo\nsecond line\n[pages 2–2 of 3; continue with offset 3]')
})

test('what fits is shown, the next call goes on behind it, and a page that is too long is cut', async () => {
  using at = stage(1_000)
  const pages = ['a', 'b', 'c'].map((letter) => letter.repeat(500))
  const first = await at.read(pdfOf(pages))
  expect([first.slice(0, 12), first.slice(-43)]).toEqual(['[page 1]\naaa', 'ne\n[pages 1–1 of 3; continue with offset 2]'])
  const long = await at.read(pdfOf(['x'.repeat(5_000), 'End']))
  expect(long).toContain('\n[page 1 is longer than fits and was cut]\n[pages 1–1 of 2; continue with offset 2]')
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(1_000)
})

test('a form that draws itself is read once', async () => {
  using at = stage()
  const form =
    '<< /Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /X 6 0 R >> >> /Length 5 >>\nstream\n/X Do\nendstream'
  expect(await at.read(buildPdf([`/X Do ${show('after')}`], { 6: form }))).toContain('after')
})
