import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { homePaths } from '../../config/paths.ts'
import { load } from '../../config/test-load.ts'
import { judgePath } from '../../security/path.ts'
import { policyOf } from './policy.ts'

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
