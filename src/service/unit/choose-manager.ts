/** Chooses the service manager of this machine. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { backgroundManager, type Processes } from './background.ts'
import { launchdManager } from './launchd.ts'
import { runProgram, type ServiceManager } from './service-run.ts'
import { hasSystemd, systemdManager } from './systemd.ts'

export type ManagerOptions = {
  readonly env: { readonly [name: string]: string | undefined }
  /** Our own home: the log and the note of a background process are in it. */
  readonly home: string
  readonly userHome: string
  readonly processes: Processes
  readonly now: () => number
}

export const managerKinds = ['systemd', 'launchd', 'background'] as const

/** Uses `requested` even when that manager does not answer, because its unit can be printed anywhere. */
export async function chooseManager(options: ManagerOptions, requested?: ServiceManager['kind']): Promise<ServiceManager> {
  const { env, home, userHome, processes, now } = options
  const run = runProgram(env)
  const logPath = join(home, 'logs', 'service.log')
  const kind = requested ?? (process.platform === 'darwin' ? 'launchd' : (await hasSystemd(run)) ? 'systemd' : 'background')
  const uid = process.getuid?.() ?? 0
  if (kind === 'systemd')
    return systemdManager({ configHome: env.XDG_CONFIG_HOME || join(userHome, '.config'), uid, run, exists: existsSync })
  if (kind === 'launchd') return launchdManager({ userHome, uid, run, exists: existsSync, logPath })
  return backgroundManager({ folder: join(home, 'run'), logPath, processes, now })
}
