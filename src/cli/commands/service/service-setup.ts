/** Prepares what the `service` commands need: the manager, what it runs, and the keys that the service would lack. */

import { homedir } from 'node:os'
import { join } from 'node:path'
import { http } from '../../../channels/http/kind.ts'
import type { httpRows } from '../../../channels/http/settings.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { channelSettings } from '../../../config/config.ts'
import { keepKey, readKeys } from '../../../config/keys-file.ts'
import { homePaths } from '../../../config/paths.ts'
import { keysIn } from '../../../host/setup/weak-keys.ts'
import { localUrl } from '../../../http/server-address.ts'
import type { Values } from '../../../kit/settings.ts'
import { takeLock } from '../../../memory/agent-files/folder-lock.ts'
import { isAlive, ownerOf } from '../../../memory/journal/process-owner.ts'
import { ownProgram } from '../../../service/own-program.ts'
import { chooseManager } from '../../../service/unit/choose-manager.ts'
import type { ServiceManager, ServiceRun } from '../../../service/unit/service-run.ts'

export function managerOf({ env, home }: CliContext, wanted?: ServiceManager['kind']): Promise<ServiceManager> {
  const processes = { ownerOf, isAlive, takeLock, sleep: Bun.sleep }
  return chooseManager({ env, home, userHome: env.HOME || homedir(), processes, now: Date.now }, wanted)
}

export function logPathOf({ home }: CliContext): string {
  return join(homePaths(home).logs, 'service.log')
}

/** The service gets the places of this shell and nothing else; keys come from keys.env. */
export function serviceRun({ context, paths }: CliSetup, flags: readonly string[]): ServiceRun {
  const { env, home } = context
  const names = ['HOME', 'PATH', 'LANG', 'TZ', 'BRAIDCLAW_HOME', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK'] as const
  return {
    argv: [ownProgram(), 'serve', ...flags],
    env: Object.fromEntries(names.flatMap((name): [string, string][] => (env[name] ? [[name, env[name]]] : []))),
    folder: home,
    logPath: join(paths.logs, 'service.log'),
  }
}

/** Returns the keys that the configuration uses and that only the environment of this shell has. */
export function missingKeys({ config, context, paths }: CliSetup): readonly (readonly [name: string, value: string])[] {
  const { keys } = readKeys(paths.keys)
  return keysIn(config, context).filter(([name]) => !(name in keys))
}

/** @throws errno errors */
export function storeKeys(home: string, keys: readonly (readonly [name: string, value: string])[]): void {
  for (const [name, value] of keys) keepKey(homePaths(home).keys, name, value)
}

/** Returns the settings of the server that this command line starts: its flags come before the configuration. */
export function gatewaySettings({ config }: CliSetup, argv: readonly string[] = []): Values<typeof httpRows> {
  const settings = channelSettings(config, http)
  const given = (flag: string) => argv[argv.indexOf(flag) + 1 || argv.length]
  return { ...settings, host: given('--host') ?? settings.host, port: Number(given('--port') ?? settings.port) }
}

/** Returns where that server answers; undefined when it takes any free port. */
export function serviceUrl(setup: CliSetup, argv?: readonly string[]): string | undefined {
  const settings = gatewaySettings(setup, argv)
  return settings.port === 0 ? undefined : localUrl(settings)
}
