/** Verifies a manifest offline, and everything that is at hand of what it names; says exactly what does not hold. */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { isSignedBy } from './agent-key.ts'
import { manifestSchemas, manifestText, type SignedManifest, signedBytes } from './run-manifest.ts'

type VerifyOptions = {
  /** The bytes of each artifact that is at hand; absent: artifacts are not looked at. */
  readonly artifacts?: ReadonlyMap<string, Uint8Array>
  /** The log of the run; absent: it is not looked at. */
  readonly log?: Uint8Array
  /** The public key that the operator knows of this agent, as 64 hex digits. */
  readonly pinnedKey?: string
  /** The run that it was delivered for; absent: the manifest itself says of which run it is. */
  readonly run?: NamedRun
}

type NamedRun = Readonly<Record<'run_id' | 'task_id' | 'agent_id' | 'role', string>> & { readonly attempt: number }

/** `checked` and `unchecked` are phrases for people. */
export type Verified =
  | { readonly ok: true; readonly manifest: SignedManifest; readonly checked: readonly string[]; readonly unchecked: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] }

/** `text`: a file, which has one form only. */
export function verifyManifestText(text: string, options: VerifyOptions = {}): Verified {
  const value = parseJson(text)
  if (value === undefined) return altered('the manifest is no JSON')
  const verified = verifyManifest(value, options)
  if (verified.ok && manifestText(verified.manifest) !== text)
    return altered('the file is not the canonical text of its manifest: it was written again by another program, or altered')
  return verified
}

export function verifyManifest(value: unknown, options: VerifyOptions = {}): Verified {
  const { data: manifest, error } = manifestSchemas().signed.safeParse(value)
  if (!manifest) return altered(...error.issues.map(({ path, message }) => `${path.join('.') || 'the manifest'}: ${message}`))
  const problems = [
    ...keyProblems(manifest, options),
    ...runProblems(manifest, options),
    ...artifactProblems(manifest, options),
    ...logProblems(manifest, options),
  ]
  return problems.length > 0 ? { ok: false, problems } : { ok: true, manifest, ...extent(manifest, options) }
}

function keyProblems(manifest: SignedManifest, { pinnedKey }: VerifyOptions): readonly string[] {
  const { public_key, value } = manifest.signature
  if (pinnedKey !== undefined && pinnedKey.toLowerCase() !== public_key)
    return [`it is signed with the key ${public_key}, and not with the pinned key ${pinnedKey}`]
  if (!isSignedBy(public_key, signedBytes(manifest), value))
    return ['the signature does not fit: the manifest was altered after it was signed']
  return []
}

/** A manifest that was rightly signed for another run says nothing of this one. */
function runProblems({ run_id, attempt, task, by }: SignedManifest, { run }: VerifyOptions): readonly string[] {
  if (!run) return []
  const said = nameOf({ run_id, attempt, task_id: task.task_id, agent_id: by.agent_id, role: by.role })
  return said === nameOf(run) ? [] : [`it is the manifest of ${said}, and not of ${nameOf(run)}`]
}

function nameOf({ run_id, attempt, task_id, agent_id, role }: NamedRun): string {
  return `${run_id}, attempt ${attempt} of ${task_id} by ${agent_id} as ${role}`
}

function artifactProblems({ artifacts }: SignedManifest, { artifacts: given }: VerifyOptions): readonly string[] {
  if (!given) return []
  const problems = artifacts.flatMap(({ name, digest, bytes }) => {
    const content = given.get(name)
    if (!content) return [`the artifact ${JSON.stringify(name)} is missing`]
    return contentProblem(`the artifact ${JSON.stringify(name)}`, content, { digest, bytes })
  })
  const known = new Set(artifacts.map(({ name }) => name))
  const others = [...given.keys()].filter((name) => !known.has(name))
  const twice = artifacts.length === known.size ? [] : ['an artifact is listed twice']
  return [...problems, ...twice, ...others.map((name) => `the artifact ${JSON.stringify(name)} is not in the manifest`)]
}

function logProblems({ log }: SignedManifest, { log: given }: VerifyOptions): readonly string[] {
  return given ? contentProblem('the log', given, log) : []
}

function contentProblem(what: string, content: Uint8Array, said: { readonly digest: string; readonly bytes: number }): readonly string[] {
  if (content.byteLength !== said.bytes) return [`${what} has ${content.byteLength} bytes, and the manifest says ${said.bytes}`]
  const digest = sha256(content)
  return digest === said.digest ? [] : [`${what} has the digest ${digest}, and the manifest says ${said.digest}`]
}

function extent({ artifacts, log, signature }: SignedManifest, { artifacts: given, log: givenLog, pinnedKey }: VerifyOptions) {
  const all = [
    [true, 'its form and its signature'],
    [pinnedKey !== undefined, `that the key ${signature.public_key} is the agent's`],
    [given !== undefined || artifacts.length === 0, `its artifacts (${artifacts.length})`],
    [givenLog !== undefined || log.bytes === 0, `its log (${log.bytes} bytes)`],
  ] as const
  const phrases = (isChecked: boolean) => all.filter(([checked]) => checked === isChecked).map(([, phrase]) => phrase)
  return { checked: phrases(true), unchecked: phrases(false) }
}

function altered(...problems: readonly string[]): Verified {
  return { ok: false, problems }
}

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

/** @throws Error for a name that is not a file name, and errno errors */
export function writeRunFolder(folder: string, { manifest, log, artifacts, run }: CarriedRun): Verified {
  const verified = verifyManifest(manifest, { artifacts, log, run })
  mkdirSync(join(folder, artifactFolder), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, manifestFile), verified.ok ? manifestText(verified.manifest) : `${JSON.stringify(manifest)}\n`)
  if (log) writeFileSync(join(folder, logFile), log)
  for (const [name, content] of artifacts) writeFileSync(join(folder, artifactFolder, fileName(name)), content)
  return verified
}

/** A manifest file alone, or the folder of a run. @throws errno errors when there is nothing to read */
export function verifyRunPath(path: string, pinnedKey?: string): Verified {
  if (!statSync(path).isDirectory()) return verifyManifestText(textOf(path), { pinnedKey })
  const log = bytesIfThere(join(path, logFile))
  const artifacts = artifactsIn(join(path, artifactFolder))
  return verifyManifestText(textOf(join(path, manifestFile)), { pinnedKey, artifacts, log })
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
