/** Signs manifests over their canonical JSON, so that the same facts have the same bytes on every host. */

import { canonical } from '../../kit/json.ts'
import type { AgentKey } from './agent-key.ts'
import { manifestSchemas, type RunManifest, type SignedManifest } from './run-manifest.ts'

/** A signature of a manifest is one of nothing else. */
const purpose = 'braidclaw run manifest 1\n'

/** @throws ZodError for a manifest that breaks the format: a bug of the caller */
export function signManifest(manifest: RunManifest, key: AgentKey): SignedManifest {
  const content = manifestSchemas().content.parse(manifest)
  const signature = { algorithm: 'Ed25519', public_key: key.publicKey } as const
  const value = key.sign(signedBytes({ ...content, signature: { ...signature, value: '' } }))
  return { ...content, signature: { ...signature, value } }
}

/** Everything but the signature itself: also with which key. */
export function signedBytes({ signature: { algorithm, public_key }, ...content }: SignedManifest): Uint8Array {
  return new TextEncoder().encode(`${purpose}${canonical({ ...content, signature: { algorithm, public_key } })}`)
}

/** The only text of a manifest in a file. */
export function manifestText(manifest: SignedManifest): string {
  return `${canonical(manifest)}\n`
}
