/** The tool pdf_extract through the real executable: the gate before it, and the sandboxes around the process that reads a file. */

import { expect, test } from 'bun:test'
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { pdfOf } from '../support/pdf.ts'
import { png } from '../support/picture.ts'

function withPdf(home: Nest): void {
  home.config(minimumConfig.replace(/tools_allow = .*\n/, ''))
  writeFileSync(join(home.workspace, 'a.pdf'), pdfOf(['Hello', 'World']))
}

const extract = (home: Nest, input: object, ...more: readonly string[]) =>
  home.run(['tool', 'run', 'pdf_extract', '--json', JSON.stringify(input), ...more])

test('a file outside the workspace, also behind a link, is refused as for file_read', async () => {
  using home = nest()
  withPdf(home)
  writeFileSync(join(home.dir, 'out.pdf'), pdfOf(['Secret']))
  symlinkSync('../out.pdf', join(home.workspace, 'link.pdf'))
  for (const path of [join(home.dir, 'out.pdf'), 'link.pdf']) {
    const { code, stdout, stderr } = await extract(home, { path })
    expect([code === 0, stdout + stderr]).toEqual([false, expect.stringContaining('outside_workspace')])
    expect(stdout + stderr).not.toContain('Secret')
  }
})

test.if(needs('bwrap'))('the model reads pages; the receipt names the sandbox, and nothing is asked', async () => {
  using home = nest()
  withPdf(home)
  const fixture = home.fixture([
    { tool_calls: [{ name: 'pdf_extract', arguments: { path: 'a.pdf', offset: 2 } }] },
    { text: 'Read: {{last_tool_result}}' },
  ])
  const { code, stdout } = await home.run(['agent', '-m', 'read', '--autonomy', 'readonly'], { env: { BRAIDCLAW_MOCK_FIXTURE: fixture } })
  expect([code, stdout]).toEqual([0, expect.stringContaining('[page 2]\nWorld\nsecond line\n[pages 2–2 of 2]')])
  expect((await home.run(['run', 'show', 'last', '--json'])).stdout).toContain('"sandbox":"bubblewrap"')
})

test('with Landlock, and without a sandbox by the choice of the operator, it reads too', async () => {
  using home = nest()
  withPdf(home)
  for (const sandbox of ['landlock', 'none'])
    expect((await extract(home, { path: 'a.pdf', limit: 1 }, '--sandbox', sandbox)).stdout).toContain('[page 1]\nHello')
  rmSync(join(home.workspace, 'a.pdf'))
  expect((await extract(home, { path: 'a.pdf' }, '--sandbox', 'none')).code).not.toBe(0)
})

const fileRead = (home: Nest, input: object) => home.run(['tool', 'run', 'file_read', '--json', JSON.stringify(input)])

test.if(needs('bwrap'))('file_read reads pages of a PDF by their numbers, all without them, and refuses what is no number', async () => {
  using home = nest()
  withPdf(home)
  writeFileSync(join(home.dir, 'out.pdf'), pdfOf(['Secret']))
  writeFileSync(join(home.workspace, 'junk.pdf'), '%PDF-1.7\0junk')
  for (const [input, ...says] of [
    [{ path: '../out.pdf', pages: '1' }, 'outside_workspace'],
    [{ path: 'a.pdf', pages: '2-1' }, 'pages: "2-1" names no pages; write "3" or "1-3"'],
    [{ path: 'a.pdf', pages: '0' }, 'names no pages'],
    [{ path: 'a.pdf', pages: '1,2' }, 'names no pages'],
    [{ path: 'a.pdf', pages: '7' }, 'it has 2 pages; page 7 does not exist'],
    [{ path: 'junk.pdf' }, 'it cannot be read'],
  ] as const) {
    const { code, stdout, stderr } = await fileRead(home, input)
    expect([code === 0, stdout + stderr]).toEqual([false, expect.stringContaining(says[0])])
    expect(stdout + stderr).not.toContain('Warning')
  }
  expect((await fileRead(home, { path: 'a.pdf', pages: '2' })).stdout).toContain('[page 2]\nWorld')
  expect((await fileRead(home, { path: 'a.pdf', pages: '1-9' })).stdout).toContain('[pages 1–2 of 2]')
})

test('file_read says what a picture is, and names one that is broken or a file that is neither', async () => {
  using home = nest()
  withPdf(home)
  writeFileSync(join(home.workspace, 'a.txt'), png())
  writeFileSync(join(home.workspace, 'cut.png'), png().subarray(0, 30))
  writeFileSync(join(home.workspace, 'b.png'), 'a\0b')
  expect((await fileRead(home, { path: 'a.txt' })).stdout).toContain(`[a picture, image/png, ${png().length} bytes]`)
  for (const [path, why] of [
    ['cut.png', '"cut.png": it is a broken PNG picture'],
    ['b.png', '"b.png" is not text'],
  ] as const)
    expect((await fileRead(home, { path })).stderr).toContain(why)
})
