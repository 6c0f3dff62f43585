/** Writes a run as a folder that can be carried to another host, and verifies one: manifest.json, run.log, artifacts/NAME. */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manifestText } from './sign-manifest.ts'
import { type NamedRun, type Verified, verifyManifest, verifyManifestText } from './verify-manifest.ts'

export type CarriedRun = {
  /** As the control plane stores it. */
  readonly manifest: unknown
  readonly log?: Uint8Array
  readonly artifacts: ReadonlyMap<string, Uint8Array>
  /** Which run it was delivered for. */
  readonly run?: NamedRun
}

const [manifestFile, logFile, artifactFolder] = ['manifest.json', 'run.log', 'artifacts'] as const
const maxFileBytes = 67_108_864

/** @throws Error for a name that is no file name, and errno errors */
export function writeRunFolder(folder: string, { manifest, log, artifacts, run }: CarriedRun): Verified {
  const verified = verifyManifest(manifest, { artifacts, ...(log ? { log } : {}), ...(run ? { run } : {}) })
  mkdirSync(join(folder, artifactFolder), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, manifestFile), verified.ok ? manifestText(verified.manifest) : `${JSON.stringify(manifest)}\n`)
  if (log) writeFileSync(join(folder, logFile), log)
  for (const [name, content] of artifacts) writeFileSync(join(folder, artifactFolder, fileName(name)), content)
  return verified
}

/** A manifest file alone, or the folder of a run. @throws errno errors when there is nothing to read */
export function verifyRunPath(path: string, pinnedKey?: string): Verified {
  const pinned = pinnedKey === undefined ? {} : { pinnedKey }
  if (!statSync(path).isDirectory()) return verifyManifestText(textOf(path), pinned)
  const log = bytesIfThere(join(path, logFile))
  const artifacts = artifactsIn(join(path, artifactFolder))
  return verifyManifestText(textOf(join(path, manifestFile)), { ...pinned, artifacts, ...(log ? { log } : {}) })
}

/** Bytes that are no UTF-8 must not become others unseen. */
function textOf(path: string): string {
  const bytes = bytesIfThere(path) ?? readFileSync(path)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return ''
  }
}

function artifactsIn(folder: string): ReadonlyMap<string, Uint8Array> {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : []
  return new Map(names.map((name) => [name, bytesIfThere(join(folder, name)) ?? new Uint8Array()]))
}

function bytesIfThere(path: string): Uint8Array | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat) return undefined
  if (!stat.isFile() || stat.size > maxFileBytes) throw new Error(`"${path}" is no file of at most ${maxFileBytes} bytes`)
  return readFileSync(path)
}

function fileName(name: string): string {
  if (/^(?!\.{1,2}$)[^/\0]{1,255}$/.test(name)) return name
  throw new Error(`the artifact ${JSON.stringify(name)} has no name that a file may have`)
}
