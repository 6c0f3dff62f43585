/** A resolved configuration made into what commands share: the redactor knows its keys, the log its level. */

import { type Config, isWireProvider, type Origins } from '../../config/config.ts'
import { homePaths } from '../../config/paths.ts'
import { weaknessOf } from '../../security/redaction/secret-strength.ts'
import type { HostContext, Setup } from '../api.ts'
import { createLog } from './logger.ts'

export type Resolved = {
  readonly config: Config
  readonly origins: () => Origins
  readonly notices: readonly string[]
  readonly file?: string
  readonly assumed?: string
}

export function equip<Context extends HostContext>(
  context: Context,
  { config, origins, notices, file, assumed }: Resolved,
): Setup<Context> {
  const { home, env, redactor } = context
  for (const [name, value] of keysIn(config, env)) if (!weaknessOf(value)) redactor.register(value, name)
  const log = createLog({
    wish: env.BRAIDCLAW_LOG,
    level: config.log.level,
    write: context.say,
    redact: redactor.text,
    now: Date.now,
  })
  for (const notice of [...notices, ...(context.keysProblem ? [context.keysProblem] : [])]) log('warn', notice)
  return { config, origins, paths: homePaths(home), log, redactor, context, ...(file ? { file } : {}), ...(assumed ? { assumed } : {}) }
}

/** Every variable that the configuration names as a key; the usual ones the context knows already. */
export function keysIn(config: Config, env: HostContext['env']): [string, string][] {
  const named = Object.values(config.providers.models).flatMap((model) =>
    isWireProvider(model) && model.apiKeyEnv ? [model.apiKeyEnv] : [],
  )
  return named.flatMap((name): [string, string][] => (env[name] ? [[name, env[name]]] : []))
}
