/** What the host needs of its process: the environment with the keys that onboard kept, where our records are, and what must stay secret. */

import { readlinkSync } from 'node:fs'
import { readKeys } from '../../config/keys-file.ts'
import { createRedactor } from '../../security/redaction/redact.ts'
import { weaknessOf } from '../../security/redaction/secret-strength.ts'
import type { Environment, HostContext } from '../api.ts'
import { FailureError } from '../failure.ts'

export type HostContextOptions = Pick<HostContext, 'env' | 'channels' | 'say'>

/** Who is told of lines may have more to do with them: `say` is called only later. @throws FailureError when nothing says where our records are */
export function createHostContext({ env: given, channels, say }: HostContextOptions): HostContext {
  const userHome = userHomeOf(given)
  const moved = given.BRAIDCLAW_HOME || given.SHELLCLAW_HOME
  const home = moved ? absolute(moved, userHome) : `${userHome.endsWith('/') ? userHome.slice(0, -1) : userHome}/.braidclaw`
  const kept = readKeys(`${home}/keys.env`)
  const env: Environment = { ...given, ...missingIn(given, kept.keys), HOME: userHome }
  const redactor = createRedactor()
  for (const [name, value] of Object.entries(env))
    if (value && (isSecret(name) || name in kept.keys) && !weaknessOf(value)) redactor.register(value, name)
  return { env, channels, redactor, cwd: currentFolder(), home, say, ...(kept.problem ? { keysProblem: kept.problem } : {}) }
}

/** A variable of the environment counts, unless it is empty. */
function missingIn(given: Environment, keys: { readonly [name: string]: string }): Environment {
  return Object.fromEntries(Object.entries(keys).filter(([name]) => !given[name]))
}

function isSecret(name: string): boolean {
  return secretEndings.some((ending) => name.endsWith(ending))
}

const secretEndings = ['_API_KEY', '_ACCESS_KEY', '_TOKEN', '_SECRET', '_PASSWORD']

/** A folder that was removed under us is called "… (deleted)" by the system: who needs it is told that it is not there. */
function currentFolder(): string {
  try {
    return process.cwd()
  } catch {
    return readlinkSync('/proc/self/cwd')
  }
}

/**
 * What `~` means. Whoever takes HOME away wants the real home left alone: the user database is asked only when BRAIDCLAW_HOME says where our
 * records are, so that forbidden paths such as ~/.ssh keep their meaning.
 */
function userHomeOf({ HOME = '', BRAIDCLAW_HOME, SHELLCLAW_HOME }: Environment): string {
  if (HOME.startsWith('/')) return HOME
  if (!BRAIDCLAW_HOME && !SHELLCLAW_HOME) {
    const what = HOME === '' ? 'HOME is not set' : `HOME is no absolute path: ${JSON.stringify(HOME)}`
    throw new FailureError('error', `${what}; set HOME or BRAIDCLAW_HOME`)
  }
  return process.getBuiltinModule('node:os').userInfo().homedir || '/'
}

function absolute(path: string, userHome: string): string {
  if (path === '~' || path.startsWith('~/')) return `${userHome}${path.slice(1)}`
  return process.getBuiltinModule('node:path').resolve(path)
}
