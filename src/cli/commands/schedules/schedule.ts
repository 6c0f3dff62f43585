/** Implements `schedule add | list | show | pause | resume | remove`. */

import { refusedBy, takeTurn } from '../../../channels/take-turn.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import type { Schedule, ScheduledRun, Schedules } from '../../../host/contract/schedules-api.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { timeText } from '../../../host/schedules/schedule-view.ts'
import { openSchedules } from '../../../host/schedules/schedules.ts'
import { schedulerFor } from '../../../host/schedules/serve-schedules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { count, cut, flat, visible } from '../../../kit/text.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import { beginByText } from '../../../sop/serve-sops.ts'
import { type Arguments, type Command, type Complete, command, type Example, type Flags } from '../../args/command.ts'
import { agentFlag, autonomyFlag, jsonFlag, messageOf, modelFlag, sandboxFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { printList, printOne } from '../../print-list.ts'

function listLine({ name, state, when, zone, next: [next], last, why }: Schedule): string {
  const due = next === undefined ? state + (why === undefined ? '' : `: ${why}`) : `next ${timeText(next, zone)}`
  const ended = last === undefined ? 'never run' : `last ${last.state}`
  return `${name.padEnd(16)}  ${when.padEnd(18)}  ${due}  (${ended})`
}

function scheduleText(schedule: Schedule): string {
  const { name, state, why, when, zone, next, message, workspace, agent, autonomy, conversation, channel, to, check } = schedule
  const { missed, overlap, pauseAfter, failures } = schedule
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['name', name],
    ['state', state + (why === undefined ? '' : `: ${why}`)],
    ['when', `${when} (${zone})`],
    ['next', next.length === 0 ? undefined : next.map((each) => timeText(each, zone)).join('\n              ')],
    ['message', visible(message)],
    ['workspace', workspace],
    ['agent', agent],
    ['autonomy', autonomy],
    ['conversation', conversation === 'new' ? 'a new one each time' : 'the same each time'],
    ['made by', schedule.madeInChat ? 'the agent, for the chat that it answers to' : undefined],
    ['answer to', channel === undefined ? undefined : `${channel} ${to}`],
    ['check', check],
    ['missed', missed],
    ['overlap', overlap === 'skip' ? 'skip a due time while the previous run has not ended' : 'wait for the previous run'],
    ['pause after', pauseAfter === 0 ? 'never' : `${count(pauseAfter, 'failure')} in a row (now ${failures})`],
  ]
  return rows.flatMap(([label, text]) => (text === undefined ? [] : [`${label.padEnd(12)}  ${text}\n`])).join('')
}

export function runLine(run: ScheduledRun, zone: string): string {
  const { due, state, startedBy, attempt, passedOver, message, check, runId, tokens, costMicros, sent } = run
  const told = [
    startedBy === 'hand' ? 'started by hand' : '',
    attempt > 1 ? `attempt ${attempt}` : '',
    passedOver > 0 ? `stands for ${count(passedOver, 'earlier due time')}` : '',
    message === undefined ? '' : cut(flat(message), 160),
    check === undefined ? '' : `check ${cut(flat(check), 120)}`,
    tokens === undefined ? '' : `${tokens} tokens${costMicros === undefined ? '' : `, $${(costMicros / 1e6).toFixed(4)}`}`,
    sent === undefined ? '' : sent.startsWith('not sent') ? cut(flat(sent), 120) : 'sent',
    runId ?? '',
  ]
  return `${timeText(due, zone)}  ${state.padEnd(11)}  ${told.filter((each) => each !== '').join('; ')}\n`
}

/** Opens the schedules of a home for commands that start no run. */
function withSchedules<T>(setup: CliSetup, use: (schedules: Schedules) => T | Promise<T>): Promise<T> {
  return withMemory(setup, (memory) => use(openSchedules(setup, memory)))
}

const complete: Complete = (context, partial) =>
  withSchedules(loadSetup(context), (schedules) => schedules.list().flatMap(({ name }) => (name.startsWith(partial) ? [name] : [])))

const scheduleArgs = { name: { type: 'text', about: 'Name of the schedule', complete } } as const satisfies Arguments

/** Warns when nothing would start what is due. */
function sayUnserved({ process: { stderr } }: CliContext, schedules: Schedules): void {
  if (schedules.isServed()) return
  stderr.write('note: no process runs schedules now; "braidclaw daemon" and "braidclaw serve" do while they are up\n')
}

const flags = {
  at: { type: 'text', about: 'Once: "in 20m", "18:30", "2026-12-24 09:00", "2026-12-24T09:00:00Z"' },
  every: { type: 'text', about: 'At an interval from now on: 30m, 2h, 1h30m, 1d' },
  cron: { type: 'text', about: 'By a cron expression: minute hour day month weekday, or @daily' },
  tz: { type: 'text', about: 'The time zone, like Europe/Berlin (default: the one of this system)' },
  message: { type: 'text', short: 'm', about: 'What the agent should do; without it the text comes from stdin' },
  channel: { type: 'text', about: 'The channel that gets the answer: fifo, discord, telegram' },
  to: { type: 'text', about: 'The address on that channel: a conversation id, or the address that the channel itself uses' },
  check: { type: 'text', about: 'A command that must exit with 0 after the run; it runs in the sandbox and changes nothing' },
  missed: {
    type: 'choice',
    values: ['run-once', 'skip', 'run-all'],
    about: 'What to do about due times when nothing ran: one run for all of them (default), none, or one each (100 at most)',
  },
  overlap: { type: 'choice', values: ['skip', 'wait'], about: 'While the previous run has not ended: skip (default), or wait for it' },
  conversation: { type: 'choice', values: ['new', 'same'], about: 'A new conversation each time (default), or always the same' },
  pauseAfter: { type: 'whole', about: 'Pause after so many failures in a row (default: 5; 0: never)' },
  ...agentFlag,
  ...autonomyFlag,
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags

export const add = command({
  flags,
  args: { name: { type: 'text', about: 'Its name: letters, digits, "-" and "_"' } },
  examples: [
    [
      'report --cron "0 9 * * mon-fri" --tz Europe/Berlin -m "Write report.md about yesterday\'s commits" --check "test -s report.md"',
      'on workdays',
    ],
    ['tidy --every 6h -m "Sort the inbox folder" --channel discord --to 1234567890', 'and the answer goes to Discord'],
    ['remind --at "in 20m" -m "Say that the tea is ready" --channel fifo --to me', 'once'],
  ],
  details:
    () => `Nothing runs by itself: "braidclaw daemon" and "braidclaw serve" start what is due while they are up. What was missed is decided by --missed.
Nobody can be asked during such a run: what needs a yes is refused, and the run does not count as good.`,
  exits: [9],
  async run(context, given, { name }) {
    const { at, every, cron, tz: zone, agent, autonomy, json = false, channel, to, check } = given
    const setup = loadSetup(context, given)
    const advice = 'say what the agent is to do: --message "…"'
    const message = given.message ?? (await messageOf({ advice }, context))
    await withSchedules(setup, (schedules) => {
      const { missed, overlap, conversation, pauseAfter } = given
      const place = { workspace: workspaceOf(setup), agent, autonomy, channel, to }
      const options = { zone, check, missed, overlap, conversation, pauseAfter, ...place }
      const added = schedules.add({ name, timing: { at, every, cron }, message, ...options })
      printOne(context, { json, value: added, text: `added ${nextText(added)}\n` })
      if (!json) sayUnserved(context, schedules)
    })
  },
})

export const list = command({
  flags: jsonFlag,
  examples: [
    ['', 'all of them'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false }) {
    await withSchedules(loadSetup(context), (schedules) => {
      const items = schedules.list()
      printList(context, { items, json, lines: items.map(listLine), none: 'no schedules yet; "braidclaw schedule add --help" shows how' })
      if (items.length > 0 && !json) sayUnserved(context, schedules)
    })
  },
})

export const show = command({
  flags: { limit: { type: 'whole', default: 10, about: 'How many runs at most' }, ...jsonFlag },
  args: scheduleArgs,
  examples: [
    ['report', 'what it does, when it is due, how its last runs ended'],
    ['report --limit 100 --json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { limit, json = false }, { name }) {
    await withSchedules(loadSetup(context), (schedules) => {
      const [found, runs] = [schedules.show(name), schedules.runs(name, limit)]
      const last = runs.length > 0 ? `\nruns, latest first:\n${runs.map((each) => runLine(each, found.zone)).join('')}` : ''
      printOne(context, { json, value: { ...found, runs }, text: scheduleText(found) + last })
      if (!json) sayUnserved(context, schedules)
    })
  },
})

/** Makes a command that changes one schedule and says what it did. */
function changing(example: Example, change: (schedules: Schedules, name: string) => Schedule, told: (schedule: Schedule) => string) {
  return {
    flags: jsonFlag,
    args: scheduleArgs,
    examples: [example],
    exits: [9],
    async run(context: CliContext, { json = false }: { readonly json?: boolean }, { name }: { readonly name: string }) {
      await withSchedules(loadSetup(context), (schedules) => {
        const changed = change(schedules, name)
        printOne(context, { json, value: changed, text: `${told(changed)}\n` })
      })
    },
  } as const satisfies Command<typeof jsonFlag, typeof scheduleArgs>
}

export const pause = changing(
  ['report', 'until it is resumed'],
  (schedules, name) => schedules.pause(name),
  ({ name }) => `paused ${name}; to resume it: braidclaw schedule resume ${name}`,
)

export const resume = changing(['report', 'from the next due time on'], (schedules, name) => schedules.resume(name), nextText)

export const remove = changing(
  ['report', 'a run that is under way continues'],
  (schedules, name) => schedules.remove(name),
  ({ name }) => `removed ${name}`,
)

function nextText({ name, next, zone }: Schedule): string {
  return `${name}: next ${next.map((each) => timeText(each, zone)).join(', then ')}`
}

/** Implements `schedule run`: it runs a schedule now and shows the answer. */
export const run = command({
  flags: { ...modelFlag, ...sandboxFlag, ...jsonFlag },
  args: scheduleArgs,
  examples: [
    ['report', 'as if it were due; its own times stay as they are'],
    ['report --json', 'how it ended, for scripts'],
  ],
  details: () => 'The answer is printed here. If the schedule has a channel, "braidclaw daemon" sends it there too.',
  exits: [9, 130],
  async run(context, { model, sandbox, json = false }, { name }) {
    const host = await openHost(loadSetup(context, { model }))
    await using _end = atAsyncEnd(() => host.close())
    const schedules = await host.schedules()
    const { id, zone } = schedules.show(name)
    const scheduler = await schedulerFor(host, { turns: { takeTurn, refusedBy, procedure: beginByText }, sandbox })
    let answer = ''
    const show = (event: AgentEvent) => {
      if (event.type === 'done' && event.result !== undefined) answer = event.result
    }
    using _interrupt = onInterrupt(() => scheduler.cancel('user'))
    const ended = await scheduler.runNow(id, { show }).ended
    printOne(context, { json, value: { ...ended, answer }, text: answer && `${answer}\n` })
    if (!json) context.process.stderr.write(runLine(ended, zone))
    if (ended.ending === 'cancelled') throw new CliExit(exitCodes.cancelled)
    if (ended.state !== 'good') throw new CliExit(exitCodes.error)
  },
})
