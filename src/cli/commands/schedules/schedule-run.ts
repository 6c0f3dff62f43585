/** Implements `schedule run`: it runs a schedule now and shows the answer. */

import { refusedBy, takeTurn } from '../../../channels/take-turn.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { schedulerFor } from '../../../host/schedules/serve-schedules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag, modelFlag, sandboxFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { scheduleArgs } from './schedule.ts'
import { runLine } from './schedule-text.ts'

const flags = { ...modelFlag, ...sandboxFlag, ...jsonFlag } as const satisfies Flags

export const run = {
  flags,
  args: scheduleArgs,
  examples: [
    ['report', 'as if it were due; its own times stay as they are'],
    ['report --json', 'how it ended, for scripts'],
  ],
  details: () => 'The answer is printed here. If the schedule has a channel, "braidclaw daemon" sends it there too.',
  exits: [9, 130],
  async run(context, { model, sandbox, json = false }, { name }) {
    const host = openHost(loadSetup(context, { model }))
    const { stdout, stderr } = context.process
    try {
      const schedules = await host.schedules()
      const { id, zone } = schedules.show(name)
      const scheduler = await schedulerFor(host, { turns: { takeTurn, refusedBy }, ...(sandbox ? { sandbox } : {}) })
      const seen: { answer?: string } = {}
      const interrupt = onInterrupt(() => scheduler.cancel('user'))
      const ended = await scheduler.runNow(id, { show: (event) => note(seen, event) }).ended.finally(interrupt.stop)
      const { answer = '' } = seen
      if (json) stdout.write(`${JSON.stringify({ ...ended, answer })}\n`)
      else {
        if (answer !== '') stdout.write(`${answer}\n`)
        stderr.write(runLine(ended, zone))
      }
      if (ended.ending === 'cancelled') throw new CliExit(exitCodes.cancelled)
      if (ended.state !== 'good') throw new CliExit(exitCodes.error)
    } finally {
      await host.close()
    }
  },
} as const satisfies Command<typeof flags, typeof scheduleArgs>

function note(seen: { answer?: string }, event: AgentEvent): void {
  if (event.type === 'done' && event.result !== undefined) seen.answer = event.result
}
