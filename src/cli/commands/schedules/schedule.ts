/** Implements `schedule list | show | pause | resume | remove`. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import type { Schedule, Schedules } from '../../../host/contract/schedules-api.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/flags.ts'
import { listLine, runLine, scheduleText, timeText } from './schedule-text.ts'
import { sayUnserved, scheduleArgs, withSchedules } from './with-schedules.ts'

const showFlags = { limit: { type: 'whole', default: 10, about: 'How many runs at most' }, ...jsonFlag } as const satisfies Flags

export const list = {
  flags: jsonFlag,
  examples: [
    ['', 'all of them'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    await withSchedules(loadSetup(context), (schedules) => {
      const found = schedules.list()
      const { stdout, stderr } = context.process
      if (json) return stdout.write(`${JSON.stringify(found)}\n`)
      if (found.length === 0) return stderr.write('no schedules yet; "braidclaw schedule add --help" shows how\n')
      stdout.write(found.map(listLine).join(''))
      sayUnserved(context, schedules)
    })
  },
} as const satisfies Command<typeof jsonFlag>

export const show = {
  flags: showFlags,
  args: scheduleArgs,
  examples: [
    ['report', 'what it does, when it is due, how its last runs ended'],
    ['report --limit 100 --json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { limit, json = false }, { name }) {
    await withSchedules(loadSetup(context), (schedules) => {
      const [found, runs] = [schedules.show(name), schedules.runs(name, limit)]
      const { stdout } = context.process
      if (json) return stdout.write(`${JSON.stringify({ ...found, runs })}\n`)
      stdout.write(scheduleText(found))
      if (runs.length > 0) stdout.write(`\nruns, latest first:\n${runs.map((each) => runLine(each, found.zone)).join('')}`)
      sayUnserved(context, schedules)
    })
  },
} as const satisfies Command<typeof showFlags, typeof scheduleArgs>

type Change = (schedules: Schedules, name: string) => Schedule

/** A command that changes one schedule and says what it did. */
function changing(example: readonly [string, string], change: Change, told: (schedule: Schedule) => string) {
  return {
    flags: jsonFlag,
    args: scheduleArgs,
    examples: [example],
    exits: [9],
    async run(context: CliContext, { json = false }: { readonly json?: boolean }, { name }: { readonly name: string }) {
      await withSchedules(loadSetup(context), (schedules) => {
        const changed = change(schedules, name)
        context.process.stdout.write(json ? `${JSON.stringify(changed)}\n` : `${told(changed)}\n`)
      })
    },
  } as const satisfies Command<typeof jsonFlag, typeof scheduleArgs>
}

export const pause = changing(
  ['report', 'until it is resumed'],
  (schedules, name) => schedules.pause(name),
  ({ name }) => `paused ${name}; to go on: braidclaw schedule resume ${name}`,
)

export const resume = changing(['report', 'from the next due time on'], (schedules, name) => schedules.resume(name), nextText)

export const remove = changing(
  ['report', 'a run that is under way goes on'],
  (schedules, name) => schedules.remove(name),
  ({ name }) => `removed ${name}`,
)

export function nextText({ name, next, zone }: Schedule): string {
  return `${name}: next ${next.map((each) => timeText(each, zone)).join(', then ')}`
}
