/** Implements `estop`: it stops every tool of this home, or clears the stop. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { homePaths } from '../../../config/paths.ts'
import { stopRecords } from '../../../host/records/stop.ts'
import { createLog } from '../../../host/setup/context.ts'
import { command, type Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'

const flags = {
  clear: { type: 'boolean', about: 'Lift the stop' },
  reason: { type: 'text', about: 'Why; shown to whoever is stopped' },
  ...jsonFlag,
} as const satisfies Flags

/** Creates a log without the configuration, so that a stop also works when the configuration is broken. */
function logOf({ env, process }: CliContext) {
  return createLog({ request: env.BRAIDCLAW_LOG, level: 'warn', write: process.stderr.write, redact: (text) => text, now: Date.now })
}

export const estop = command({
  flags: flags,
  examples: [
    ['--reason "wrong branch"', 'stop every tool of every process now'],
    ['--clear', 'let tools run again'],
  ],
  run(context, { clear = false, reason, json = false }) {
    const { estop: path } = homePaths(context.home)
    const stop = stopRecords({ path, log: logOf(context), redact: context.redactor.text })
    const { stopped, was, reason: now } = clear ? stop.clear() : stop.set(reason)
    const words = clear
      ? was
        ? 'cleared: tools may run again'
        : 'not stopped; nothing to clear'
      : `stopped: no tool runs until "braidclaw estop --clear" (${path})`
    context.process.stdout.write(json ? `${JSON.stringify({ stopped, reason: now ?? null, path })}\n` : `${words}\n`)
  },
})
