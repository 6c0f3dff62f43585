/** Makes secrets: a prefix that names the kind, and 32 random bytes. Only their SHA-256 is kept. */

import { sha256 } from '../../../../kit/sha256.ts'
import type { PlaneContext } from '../../context.ts'

export type NewSecret = { readonly secret: string; readonly digest: string }

const secretBytes = 32

/** `cpo` operators, `cpa` agents, `cpr` runs. */
export function newSecret({ randomBytes }: Pick<PlaneContext, 'randomBytes'>, kind: 'cpo' | 'cpa'): NewSecret {
  const secret = `${kind}_${Buffer.from(randomBytes(secretBytes)).toString('base64url')}`
  return { secret, digest: sha256(secret) }
}

/** The id of a key or an operator: short, and of no use to who wants the secret. */
export function newSecretId({ randomBytes }: Pick<PlaneContext, 'randomBytes'>, kind: 'op' | 'key'): string {
  return `${kind}_${Buffer.from(randomBytes(9)).toString('hex')}`
}
