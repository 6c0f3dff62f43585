/** What a command needs before it can do anything: the configuration, the redactor, the log. Bad configuration ends the command here. */

import { type Config, describeProblem, type providerNamed, type WireProvider } from '../config/config.ts'
import type { Flags } from '../config/layers/flags.ts'
import { loadConfig } from '../config/load.ts'
import { homePaths } from '../config/paths.ts'
import { createTrust } from '../config/trust.ts'
import { CliExit, exitCodes } from './exit.ts'
import { createLog } from './log.ts'
import type { CliContext, Setup } from './world.ts'

/** @throws CliExit 1 naming every problem of the configuration at once. */
export function setUp(context: CliContext, flags: Flags = {}): Setup {
  const { home, env, cwd, redactor } = context
  const paths = homePaths(home)
  const loaded = loadConfig({ home, env, cwd, flags, trusted: (folder) => createTrust(paths.trustedFolders).isTrusted(folder) })
  if (!loaded.ok) throw new CliExit(exitCodes.error, loaded.problems.map((problem) => `error: ${describeProblem(problem)}`).join('\n'))
  const { config, origins, notices, file } = loaded
  for (const [name, value] of secretsOf(config, env)) redactor.register(value, name)
  const log = createLog({
    wish: env.BRAIDCLAW_LOG,
    level: config.log.level,
    write: context.process.stderr.write,
    redact: redactor.text,
    now: Date.now,
  })
  for (const notice of notices) log('warn', notice)
  return { config, origins, paths, log, redactor, context, ...(file ? { file } : {}) }
}

/** Every variable that the configuration names as a key; the usual ones the context knows already. */
function secretsOf(config: Config, env: CliContext['env']): [string, string][] {
  const named = Object.values(config.providers.models).flatMap((model) => (isWire(model) && model.apiKeyEnv ? [model.apiKeyEnv] : []))
  return named.flatMap((name): [string, string][] => (env[name] ? [[name, env[name]]] : []))
}

function isWire(model: NonNullable<ReturnType<typeof providerNamed>>): model is WireProvider {
  return 'apiKeyEnv' in model
}
