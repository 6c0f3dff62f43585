/** Implements `control schedule list | add | enable | disable | remove`: tasks that the control plane makes by the clock. */

import type { ControlSchedule } from '../../../../control/contract/task-shapes.ts'
import type { Arguments, Example } from '../../../args/command.ts'
import { usageError } from '../../../exit.ts'
import { printList, printOne } from '../../../print-list.ts'
import { nameOf, zoneOf } from '../connect/argument-values.ts'
import { controlCommand, controlFlags, present, proposeControlSchedules } from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { draftFlags, draftOf } from '../tasks/change-task.ts'
import { moment, scheduleLines } from '../text/control-text.ts'

export const list = controlCommand({
  examples: [['', 'which there are, when each is due, and its last task']],
  async run({ context, control, json }) {
    const schedules = await control.schedules.list()
    const none = 'no schedules yet; braidclaw control schedule add --help shows how'
    printList(context, { items: schedules, json, lines: scheduleLines(schedules, Date.now(), terminalWidth()), none })
  },
})

const { at: _at, after: _after, tz: _tz, parent: _parent, ...taskFlags } = draftFlags

export const add = controlCommand({
  flags: {
    every: { type: 'text', about: 'At an interval: 30m, 2h, 1d' },
    cron: { type: 'text', about: 'By a cron expression: minute hour day month weekday, or @daily' },
    tz: { type: 'text', about: 'The time zone of --cron, like Europe/Ljubljana (default: the one of this system)' },
    missed: {
      type: 'choice',
      values: ['run-once', 'skip', 'run-all'],
      about: 'What to do about times when no control plane ran: one task for all (default), none, or one each (100 at most)',
    },
    overlap: {
      type: 'choice',
      values: ['skip', 'allow'],
      about: 'While the task before has not ended: make no new one (default), or make it',
    },
    disabled: { type: 'boolean', about: 'Add it disabled' },
    ...taskFlags,
    ...controlFlags,
  },
  args: {
    name: { type: 'text', about: 'Its name: letters, digits, ".", "_" and "-"' },
    title: { type: 'text', many: true, about: 'The title of its tasks' },
  },
  examples: [
    ['jails --every 30m --role sysadmin Check that every jail runs', 'a heartbeat'],
    ['vacuum --cron "0 3 * * sun" --tz Europe/Ljubljana --role db-admin --budget 20k Vacuum the database', 'once a week'],
  ],
  async run({ context, control, json }, given, { name, title }) {
    const { every, cron, missed = 'run-once', overlap = 'skip', disabled = false } = given
    if ((every === undefined) === (cron === undefined))
      throw usageError('say when with exactly one of --every and --cron, such as --every 30m')
    const { at: _, ...task } = { ...(await draftOf(context, given, title)), at: undefined }
    const draft = present({
      name: nameOf('schedule', name),
      cron,
      every,
      timezone: zoneOf(given.tz, context.env),
      missed,
      overlap,
      enabled: !disabled,
      task,
    })
    const added = await control.schedules.add(draft)
    printOne(context, { json, value: added, text: `added ${scheduleLine(added)}\n` })
  },
})

const args = { schedule: { type: 'text', about: 'Its name or id', complete: proposeControlSchedules } } as const satisfies Arguments

function changing(example: Example, change: (control: Control, id: string) => Promise<ControlSchedule>) {
  return controlCommand({
    flags: controlFlags,
    args,
    examples: [example],
    async run({ context, control, json }, _, { schedule }) {
      const changed = await change(control, await idOf(control, schedule))
      printOne(context, { json, value: changed, text: `${scheduleLine(changed)}\n` })
    },
  })
}

export const enable = changing(['jails', 'from the next due time on'], (control, id) => control.schedules.setEnabled(id, true))
export const disable = changing(['jails', 'it makes no task until it is enabled'], (control, id) => control.schedules.setEnabled(id, false))

export const remove = controlCommand({
  args,
  examples: [['jails', 'the tasks that it made stay']],
  async run({ context, control, json }, _, { schedule }) {
    await control.schedules.remove(await idOf(control, schedule))
    printOne(context, { json, value: { schedule, removed: true }, text: `removed ${schedule}\n` })
  },
})

/** Returns the id of a schedule, because people type its name. */
async function idOf(control: Control, typed: string): Promise<string> {
  const all = await control.schedules.list()
  return all.find(({ name, schedule_id: id }) => name === typed || id === typed)?.schedule_id ?? typed
}

function scheduleLine({ name, schedule_id: id, enabled, next_at: next }: ControlSchedule): string {
  return `${name} (${id}): ${enabled && next !== null ? `next ${moment(next, Date.now())}` : 'disabled'}`
}
