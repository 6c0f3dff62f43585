/** Verifies a manifest offline, with the artifacts and the log that are available; reports exactly what is wrong. */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../kit/errors.ts'
import { parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { isSignedBy } from './agent-key.ts'
import { manifestSchemas, manifestText, type SignedManifest, signedBytes } from './run-manifest.ts'

type ManifestEvidence = {
  /** Holds the bytes of each available artifact; absent: artifacts are not checked. */
  readonly artifacts?: ReadonlyMap<string, Uint8Array>
  /** Holds the log of the run; absent: it is not checked. */
  readonly log?: Uint8Array
  /** The public key that the operator knows of this agent, as 64 hex digits. */
  readonly pinnedKey?: string
  /** Names the run that it was delivered for; absent: any run is accepted. */
  readonly run?: NamedRun
}

type NamedRun = Readonly<Record<'run_id' | 'task_id' | 'agent_id' | 'role', string>> & { readonly attempt: number }

/** `checked` and `unchecked` are phrases for people. */
export type Verified =
  | { readonly ok: true; readonly manifest: SignedManifest; readonly checked: readonly string[]; readonly unchecked: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Verifies the text of a file, which has one form only. */
export function verifyManifestText(text: string, options: ManifestEvidence = {}): Verified {
  const value = parseJson(text)
  if (value === undefined) return altered('the manifest is not JSON')
  const verified = verifyManifest(value, options)
  if (verified.ok && manifestText(verified.manifest) !== text)
    return altered('the file is not the canonical text of its manifest: it was written again by another program, or altered')
  return verified
}

export function verifyManifest(value: unknown, options: ManifestEvidence = {}): Verified {
  const { data: manifest, error } = manifestSchemas().signed.safeParse(value)
  if (!manifest) return altered(...error.issues.map(({ path, message }) => `${path.join('.') || 'the manifest'}: ${message}`))
  const problems = [
    ...keyProblems(manifest, options),
    ...runProblems(manifest, options),
    ...artifactProblems(manifest, options),
    ...(options.log ? contentProblem('the log', options.log, manifest.log) : []),
  ]
  return problems.length > 0 ? { ok: false, problems } : { ok: true, manifest, ...extent(manifest, options) }
}

function keyProblems(manifest: SignedManifest, { pinnedKey }: ManifestEvidence): readonly string[] {
  const { public_key, value } = manifest.signature
  if (pinnedKey !== undefined && pinnedKey.toLowerCase() !== public_key)
    return [`it is signed with the key ${public_key}, and not with the pinned key ${pinnedKey}`]
  if (!isSignedBy(public_key, signedBytes(manifest), value))
    return ['the signature does not fit: the manifest was altered after it was signed']
  return []
}

/** Compares the run, because a manifest with a valid signature may belong to another run. */
function runProblems({ run_id, attempt, task, by }: SignedManifest, { run }: ManifestEvidence): readonly string[] {
  if (!run) return []
  const signedRun = nameOf({ run_id, attempt, task_id: task.task_id, agent_id: by.agent_id, role: by.role })
  return signedRun === nameOf(run) ? [] : [`it is the manifest of ${signedRun}, and not of ${nameOf(run)}`]
}

function nameOf({ run_id, attempt, task_id, agent_id, role }: NamedRun): string {
  return `${run_id}, attempt ${attempt} of ${task_id} by ${agent_id} as ${role}`
}

function artifactProblems({ artifacts }: SignedManifest, { artifacts: contents }: ManifestEvidence): readonly string[] {
  if (!contents) return []
  const problems = artifacts.flatMap(({ name, digest, bytes }) => {
    const content = contents.get(name)
    if (!content) return [`the artifact ${JSON.stringify(name)} is missing`]
    return contentProblem(`the artifact ${JSON.stringify(name)}`, content, { digest, bytes })
  })
  const known = new Set(artifacts.map(({ name }) => name))
  const others = [...contents.keys()].filter((name) => !known.has(name))
  const twice = artifacts.length === known.size ? [] : ['an artifact is listed twice']
  return [...problems, ...twice, ...others.map((name) => `the artifact ${JSON.stringify(name)} is not in the manifest`)]
}

function contentProblem(what: string, content: Uint8Array, listed: { readonly digest: string; readonly bytes: number }): readonly string[] {
  if (content.byteLength !== listed.bytes) return [`${what} has ${content.byteLength} bytes, and the manifest says ${listed.bytes}`]
  const digest = sha256(content)
  return digest === listed.digest ? [] : [`${what} has the digest ${digest}, and the manifest says ${listed.digest}`]
}

function extent({ artifacts, log, signature }: SignedManifest, { artifacts: contents, log: content, pinnedKey }: ManifestEvidence) {
  const all = [
    [true, 'its form and its signature'],
    [pinnedKey !== undefined, `that the key ${signature.public_key} is the agent's`],
    [contents !== undefined || artifacts.length === 0, `its artifacts (${artifacts.length})`],
    [content !== undefined || log.bytes === 0, `its log (${log.bytes} bytes)`],
  ] as const
  const phrases = (isChecked: boolean) => all.filter(([checked]) => checked === isChecked).map(([, phrase]) => phrase)
  return { checked: phrases(true), unchecked: phrases(false) }
}

function altered(...problems: readonly string[]): Verified {
  return { ok: false, problems }
}

export type CarriedRun = {
  /** Is the manifest as the control plane stores it. */
  readonly manifest: unknown
  readonly log?: Uint8Array
  readonly artifacts: ReadonlyMap<string, Uint8Array>
  /** Names the run that it was delivered for. */
  readonly run?: NamedRun
}

const [manifestFile, logFile, artifactFolder] = ['manifest.json', 'run.log', 'artifacts'] as const
const maxFileBytes = 67_108_864

/** @throws Error for a name that is not a file name, and errno errors */
export function writeRunFolder(folder: string, { manifest, log, artifacts, run }: CarriedRun): Verified {
  const verified = verifyManifest(manifest, { artifacts, log, run })
  mkdirSync(join(folder, artifactFolder), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, manifestFile), verified.ok ? manifestText(verified.manifest) : `${JSON.stringify(manifest)}\n`)
  if (log) writeFileSync(join(folder, logFile), log)
  for (const [name, content] of artifacts) writeFileSync(join(folder, artifactFolder, fileName(name)), content)
  return verified
}

/** Verifies a manifest file alone, or the folder of a run. @throws errno errors when there is nothing to read */
export function verifyRunPath(path: string, pinnedKey?: string): Verified {
  if (!statSync(path).isDirectory()) return verifyManifestText(textOf(path), { pinnedKey })
  const log = bytesIfThere(join(path, logFile))
  const artifacts = artifactsIn(join(path, artifactFolder))
  return verifyManifestText(textOf(join(path, manifestFile)), { pinnedKey, artifacts, log })
}

/** Returns an empty text for bytes that are not UTF-8, because decoding would replace them without notice. */
function textOf(path: string): string {
  const bytes = bytesIfThere(path) ?? readFileSync(path)
  return attempt(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) ?? ''
}

function artifactsIn(folder: string): ReadonlyMap<string, Uint8Array> {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : []
  return new Map(names.map((name) => [name, bytesIfThere(join(folder, name)) ?? new Uint8Array()]))
}

function bytesIfThere(path: string): Uint8Array | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat) return undefined
  if (!stat.isFile() || stat.size > maxFileBytes) throw new Error(`"${path}" is not a file of at most ${maxFileBytes} bytes`)
  return readFileSync(path)
}

function fileName(name: string): string {
  if (/^(?!\.{1,2}$)[^/\0]{1,255}$/.test(name)) return name
  throw new Error(`the name of the artifact ${JSON.stringify(name)} is not a valid file name`)
}
