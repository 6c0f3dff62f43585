/** Loads what every command needs first: the configuration, the redactor, the log. An invalid configuration ends the command here. */

import { describeProblem } from '../../config/config.ts'
import type { Flags } from '../../config/layers/flags.ts'
import { type Loaded, loadConfig } from '../../config/load.ts'
import { homePaths } from '../../config/paths.ts'
import { createTrust } from '../../config/trust.ts'
import { weaknessOf } from '../../security/redaction/secret-strength.ts'
import type { HostContext, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { createLog } from './logger.ts'
import { keysIn } from './weak-keys.ts'

/** `stays`: see LoadInput. */
type How = { readonly stays?: boolean }

/** @throws FailureError that names every problem of the configuration at once: `error`, or `usage` when only flags are wrong. */
export function loadSetup<Context extends HostContext>(context: Context, flags: Flags = {}, how: How = {}): Setup<Context> {
  const { config, origins, notices, file, assumed } = resolve(context, flags, how)
  const { home, env, redactor } = context
  for (const [name, value] of keysIn(config, context)) if (!weaknessOf(value)) redactor.register(value, name)
  const log = createLog({ request: env.BRAIDCLAW_LOG, level: config.log.level, write: context.say, redact: redactor.text, now: Date.now })
  for (const notice of [...notices, ...(context.keysProblem ? [context.keysProblem] : [])]) log('warn', notice)
  const found = { ...(file ? { file } : {}), ...(assumed ? { assumed } : {}) }
  return { config, origins, paths: homePaths(home), log, redactor, context, ...found }
}

/** @throws FailureError that names every problem of the configuration at once: `error`, or `usage` when only flags are wrong. */
function resolve({ home, env, cwd, channels }: HostContext, flags: Flags, { stays = false }: How = {}): Extract<Loaded, { ok: true }> {
  const trusted = (folder: string) => createTrust(homePaths(home).trustedFolders).isTrusted(folder)
  const loaded = loadConfig({ home, env, cwd, channels, flags, trusted, stays })
  if (loaded.ok) return loaded
  const code = loaded.problems.every(({ file }) => file.startsWith('--')) ? 'usage' : 'error'
  throw new FailureError(code, loaded.problems.map(describeProblem))
}
