/** `estop`: stop every tool of this home, or lift the stop. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { homePaths } from '../../../config/paths.ts'
import { createLog } from '../../../host/setup/logger.ts'
import { clearStop, readStop, setStop } from '../../../service/stop-file.ts'
import type { EstopFlags } from '../../routes/types.ts'

/** Without the configuration: a stop works also when that is broken. */
function logOf({ env, process }: CliContext) {
  return createLog({ wish: env.BRAIDCLAW_LOG, level: 'warn', write: process.stderr.write, redact: (text) => text, now: Date.now })
}

export function estop(this: CliContext, { clear = false, reason, json = false }: EstopFlags): void {
  const { estop: path } = homePaths(this.home)
  const was = readStop(path)
  if (clear) clearStop(path)
  else setStop(path, reason === undefined ? `emergency stop set at ${new Date().toISOString()}` : this.redactor.text(reason))
  const now = readStop(path)
  if (!clear) logOf(this)('info', 'estop triggered', { reason: now })
  const words = clear
    ? was === undefined
      ? 'not stopped; nothing to clear'
      : 'cleared: tools may run again'
    : `stopped: no tool runs until "braidclaw estop --clear" (${path})`
  this.process.stdout.write(json ? `${JSON.stringify({ stopped: now !== undefined, reason: now ?? null, path })}\n` : `${words}\n`)
}
