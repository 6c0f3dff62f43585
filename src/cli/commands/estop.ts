/** `estop`: stop every tool of this home, or lift the stop. */

import { homePaths } from '../../config/paths.ts'
import type { CliContext } from '../context.ts'
import type { EstopFlags } from '../routes/types.ts'
import { clearStop, readStop, setStop } from '../stop-file.ts'

export function estop(this: CliContext, { clear = false, reason, json = false }: EstopFlags): void {
  const { estop: path } = homePaths(this.home)
  const was = readStop(path)
  if (clear) clearStop(path)
  else setStop(path, reason ?? `emergency stop set at ${new Date().toISOString()}`)
  const now = readStop(path)
  const words = clear
    ? was === undefined
      ? 'not stopped; nothing to clear'
      : 'cleared: tools may run again'
    : `stopped: no tool runs until "braidclaw estop --clear" (${path})`
  this.process.stdout.write(json ? `${JSON.stringify({ stopped: now !== undefined, reason: now ?? null, path })}\n` : `${words}\n`)
}
