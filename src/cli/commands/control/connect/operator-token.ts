/** Finds the operator token of the control plane, and names the place it came from, so that a message about a wrong one can. */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import type { HostContext } from '../../../../host/api.ts'
import { commandError, usageError } from '../../../exit.ts'

/** `origin`: the variable or the file. */
export type OperatorToken = { readonly token: string; readonly origin: string }

type Place = Pick<HostContext, 'env' | 'home'>

const variable = 'CONTROLPLANE_OPERATOR_TOKEN'

/** Where `control init` keeps the first token. */
export function operatorTokenFile({ home }: Pick<HostContext, 'home'>): string {
  return join(home, 'control', 'operator.token')
}

/** @returns undefined when there is none. @throws CliExit when the file is there but cannot be used */
export function knownOperatorToken(place: Place): OperatorToken | undefined {
  const given = place.env[variable]?.trim()
  return given ? { token: given, origin: variable } : tokenIn(operatorTokenFile(place))
}

/** @throws CliExit that says where a token is looked for and how to get one */
export function operatorToken(place: Place): OperatorToken {
  const found = knownOperatorToken(place)
  if (found) return found
  throw usageError(
    `no operator token: ${variable} is not set, and ${operatorTokenFile(place)} does not exist. On the machine of the control plane: braidclaw control init. On another one: copy its operator.token to that path (mode 600)`,
  )
}

function tokenIn(path: string): OperatorToken | undefined {
  const token = secretIn(path)
  return token === undefined ? undefined : { token, origin: path }
}

/**
 * Reads a secret from a file that only its owner can read. A file that is named by a flag has to be there.
 * @throws CliExit when it cannot be used
 */
export function secretIn(path: string, flag?: string): string | undefined {
  const read = readConfigFile(path)
  if (read.state === 'missing' && flag === undefined) return undefined
  if (read.state === 'missing') throw usageError(`${flag} ${path}: there is no such file`)
  if (read.state === 'unusable') throw commandError(`${path} ${read.why}`)
  if ((statSync(path).mode & 0o077) !== 0)
    throw commandError(`${path}: others can read this secret; run: chmod 600 ${path}, and replace the secret if they did`)
  const secret = read.text.trim()
  if (!/^[\x21-\x7e]+$/.test(secret)) throw commandError(`${path} holds no token; it has to be one line such as cpo_… or cpa_…`)
  return secret
}
