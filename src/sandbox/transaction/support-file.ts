/** Keeps the result of the overlay trial, which takes some 10 ms, until something changes that could change the result. */

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Places } from '../protect/places.ts'
import { trialKey } from '../trial-key.ts'
import { type OverlaySupport, type Trying, tryOverlay } from './overlay-support.ts'

/** @returns the stored or a new result. A failure is never stored, because somebody may fix the cause. */
export async function overlaySupport(trying: Trying): Promise<{ readonly support: OverlaySupport; readonly stored: boolean }> {
  const key = keyOf(trying.places)
  const kept = read(trying.places, key)
  if (kept !== undefined) return { support: kept, stored: true }
  const support = await tryOverlay(trying)
  if (support.ok) store(trying.places, { key, support })
  return { support, stored: false }
}

export function forgetSupport(places: Places): void {
  rmSync(fileOf(places), { force: true })
}

function fileOf({ stateHome }: Places): string {
  return join(stateHome, 'run', 'overlay-works')
}

/** The file systems decide too. */
function keyOf({ workspace, stateHome }: Places): string {
  const devices = [workspace, stateHome].map((path) => statSync(path, { throwIfNoEntry: false })?.dev)
  return [workspace, ...devices, process.env.TMPDIR, trialKey()].join('\n')
}

/** We wrote the file ourselves, into a folder that nobody else can write to. */
function read(places: Places, key: string): OverlaySupport | undefined {
  try {
    const kept: { readonly key: string; readonly support: OverlaySupport } = JSON.parse(readFileSync(fileOf(places), 'utf8'))
    return kept.key === key ? kept.support : undefined
  } catch {
    return undefined
  }
}

/** Without a stored result every process runs the trial. */
function store(places: Places, kept: { readonly key: string; readonly support: OverlaySupport }): void {
  try {
    mkdirSync(dirname(fileOf(places)), { recursive: true, mode: 0o700 })
    writeFileSync(fileOf(places), JSON.stringify(kept), { mode: 0o600 })
  } catch {
    // The state folder is read-only.
  }
}
