/** Provides tests with a fresh workspace, a folder outside it, and a gate that allows only the workspace. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Check, Workspace } from './contract.ts'
import { openWorkspace } from './workspace.ts'

export type Fixture = Disposable & { readonly base: string; readonly root: string; readonly outside: string; readonly workspace: Workspace }

/** Allows only paths inside; `.git/config` may not be written, and nothing named `forbidden` may be read or written. */
export function insideOnly(root: string): Check {
  return (path, access) => {
    if (path !== root && !path.startsWith(`${root}/`)) return { ok: false, rule: 'workspace_only', reason: 'it is outside the workspace' }
    if (path.split('/').includes('forbidden')) return { ok: false, rule: 'forbidden_paths', reason: 'it is forbidden' }
    const guarded = access === 'write' && path.startsWith(`${root}/.git/config`)
    return guarded ? { ok: false, rule: 'protected', reason: 'it is protected' } : { ok: true }
  }
}

export function createFixture(): Fixture {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-workspace-')))
  const root = join(base, 'inside')
  const outside = join(base, 'outside')
  for (const folder of [root, outside]) mkdirSync(folder)
  writeFileSync(join(outside, 'secret.txt'), 'OUTSIDE')
  const workspace = openWorkspace({ root, check: insideOnly(root) })
  return { base, root, outside, workspace, [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }) }
}
