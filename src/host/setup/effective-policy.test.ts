import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load } from '../../config/load.fixture.ts'
import { homePaths } from '../../config/paths.ts'
import { judgePath } from '../../security/targets/path.ts'
import { policyOf } from './effective-policy.ts'

test('receipts that the operator put into the workspace cannot be touched: the log, its head, closed segments and the next', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-policy-')))
  try {
    const workspace = join(root, 'ws')
    mkdirSync(workspace)
    for (const name of ['audit.log', 'audit.1.log', 'audit.2.log']) writeFileSync(join(workspace, name), '')
    const loaded = load({ user: `workspace_dir = "${workspace}"\n[receipts]\npath = "${workspace}/audit.log"\n` })
    if (!loaded.ok) throw new Error('the configuration is wrong')
    const policy = policyOf(loaded.config, homePaths(join(root, 'home')), { HOME: root })
    const verdict = (path: string) => judgePath({ path, access: 'write', cwd: workspace, policy }).ok
    const refused = ['audit.log', 'audit.1.log', 'audit.2.log', 'audit.3.log', 'audit.log.next', 'receipts.head']
    expect(refused.map(verdict)).toEqual(refused.map(() => false))
    expect(['audit.txt', 'audit.1.txt', 'notes.md'].map(verdict)).toEqual([true, true, true])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})

test('a database that the operator put into the workspace can be neither read nor written, nor can the files beside it', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-policy-')))
  try {
    const workspace = join(root, 'ws')
    mkdirSync(workspace)
    const loaded = load({ user: `workspace_dir = "${workspace}"\n[memory]\npath = "${workspace}/memory.sqlite"\n` })
    if (!loaded.ok) throw new Error('the configuration is wrong')
    const policy = policyOf(loaded.config, homePaths(join(root, 'home')), { HOME: root })
    const verdicts = (path: string) => (['read', 'write'] as const).map((access) => judgePath({ path, access, cwd: workspace, policy }).ok)
    const refused = ['memory.sqlite', 'memory.sqlite-wal', 'memory.sqlite-shm', 'memory.sqlite-journal']
    expect(refused.map(verdicts)).toEqual(refused.map(() => [false, false]))
    expect(verdicts('memory.sqlite-notes')).toEqual([true, true])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})
