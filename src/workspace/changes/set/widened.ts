/**
 * Remembers on disk the modes of folders that are widened while a change set is applied, so that they are restored even after a crash.
 */

import { appendFileSync, chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unlessMissing } from '../../../kit/errors.ts'
import { codeOf, slot } from '../../descriptor.ts'
import type { RawName } from '../tree/names.ts'
import type { Tree } from '../tree/tree.ts'
import { discard } from './plan.ts'

type Widened = { readonly raw: RawName; readonly mode: number }

const FILE = 'widened'

export function rememberMode(folder: string, widened: Widened): void {
  appendFileSync(join(folder, FILE), `${JSON.stringify(widened)}\n`, { mode: 0o600 })
}

/** Restores the modes, deepest folder first. Folders that are gone, and those in `settled`, are left alone. */
export function restoreModes(folder: string, workspace: Tree, settled: ReadonlySet<RawName> = new Set()): void {
  for (const { raw, mode } of remembered(folder).toReversed()) if (!settled.has(raw)) restore(workspace, { raw, mode })
  discard(join(folder, FILE))
}

function restore(workspace: Tree, { raw, mode }: Widened): void {
  try {
    chmodSync(slot(workspace.folder(raw)), mode)
    workspace.forget(raw)
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE'].includes(codeOf(error))) throw error
  }
}

function remembered(folder: string): Widened[] {
  const text = unlessMissing(() => readFileSync(join(folder, FILE), 'utf8')) ?? ''
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Widened => JSON.parse(line))
}
