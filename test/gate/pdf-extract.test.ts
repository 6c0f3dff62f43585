/** The tool pdf_extract through the real executable: the gate before it, and the sandboxes around the process that reads a file. */

import { expect, test } from 'bun:test'
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { pdfOf } from '../support/pdf.ts'

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
