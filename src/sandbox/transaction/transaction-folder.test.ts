import { expect, test } from 'bun:test'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransaction } from './transaction-folder.ts'

test('the git index of the beginning is kept, the newest one when a view that waited begins', () => {
  const base = mkdtempSync(join(tmpdir(), 'braidclaw-transaction-'))
  const workspace = join(base, 'workspace')
  mkdirSync(join(workspace, '.git'), { recursive: true })
  const index = join(workspace, '.git/index')
  const { folder, begin } = createTransaction(base, { workspace, cache: base })
  begin()
  expect(lstatSync(join(folder, 'index'), { throwIfNoEntry: false })).toBeUndefined()
  for (const content of ['first', 'second']) {
    writeFileSync(`${index}.lock`, content)
    renameSync(`${index}.lock`, index)
    begin()
    expect(readFileSync(join(folder, 'index'), 'utf8')).toBe(content)
  }
  rmSync(base, { recursive: true, force: true })
})
