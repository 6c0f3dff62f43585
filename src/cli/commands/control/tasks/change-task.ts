/** Implements `control task edit | cancel | retry | resolve`. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import { priorities } from '../../../../control/contract/state-names.ts'
import type { Task, TaskPatch } from '../../../../control/contract/task-shapes.ts'
import type { Arguments, Command, Example, Flags, Given } from '../../../args/command.ts'
import { usageError } from '../../../exit.ts'
import { controlExits, controlFlags, noteFlag, present } from '../connect/control-flags.ts'
import { proposeControlAgents, proposeRoles, proposeTasks } from '../connect/control-names.ts'
import { idOf, nameOf } from '../connect/ids.ts'
import { show } from '../connect/screen.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { oneLine } from '../text/table.ts'
import { statusText } from '../text/task-text.ts'
import { jsonObjectOf, jsonOf, timeOf, tokensOf } from './read-draft.ts'
import { taskArgs } from './task-list.ts'

const editFlags = {
  title: { type: 'text', about: 'What is to be done' },
  description: { type: 'text', short: 'd', about: 'What exactly' },
  role: { type: 'text', short: 'r', about: 'Which role may claim it', complete: proposeRoles },
  agent: { type: 'text', about: 'Only this agent may claim it; "any" takes the limit away', complete: proposeControlAgents },
  priority: { type: 'choice', values: priorities, about: 'How soon it is claimed' },
  label: { type: 'text', many: true, about: 'All its labels from now on; "none" for none' },
  at: { type: 'text', about: 'Not before: "in 20m", "18:30", "2026-12-24 09:00"' },
  tz: { type: 'text', about: 'The time zone of --at (default: the one of this system)' },
  budget: { type: 'text', about: 'The most tokens of all attempts together, or none' },
  attempts: { type: 'whole', min: 1, max: 100, about: 'How often it is tried' },
  context: { type: 'text', about: 'A JSON object that replaces the context' },
  hold: { type: 'boolean', about: 'Nobody claims it until --release' },
  release: { type: 'boolean', about: 'Ends --hold' },
  ifVersion: { type: 'whole', about: 'Only while it has this version; "task show" names it' },
  ...controlFlags,
} as const satisfies Flags

export const edit = {
  flags: editFlags,
  args: taskArgs,
  examples: [
    ['TASK-001 --priority urgent', 'also while it runs, as labels'],
    ['TASK-001 --hold', 'nobody claims it; --release ends that'],
    ['TASK-001 --budget 200k --if-version 4', 'only when nobody changed it since'],
  ],
  exits: controlExits,
  async run(context, given, { task }) {
    const id = idOf('task', task)
    const patch = patchOf(context, given)
    await withControl(context, given, async (control) => told(context, [await control.tasks.edit(id, patch, given.ifVersion)], given.json))
  },
} as const satisfies Command<typeof editFlags, typeof taskArgs>

function patchOf(context: CliContext, given: Given<typeof editFlags>): TaskPatch {
  const { title, description, role, agent, priority, label, at, tz: zone, budget, attempts, context: facts, hold, release } = given
  if (hold && release) throw usageError('--hold and --release exclude each other; pass one')
  const patch = present({
    ...{ title, description, priority, max_attempts: attempts },
    role: role && nameOf('--role', role),
    agent_id: agent === 'any' ? null : agent && nameOf('--agent', agent),
    labels: label === undefined ? undefined : label.filter((each) => each !== 'none').map((each) => nameOf('--label', each)),
    context: facts === undefined ? undefined : jsonObjectOf('--context', facts),
    available_at: at === undefined ? undefined : timeOf(at, { zone, now: Date.now(), env: context.env }),
    budget_tokens: budget === undefined ? undefined : tokensOf('--budget', budget),
    blocked: hold ? true : release ? false : undefined,
  })
  if (Object.keys(patch).length > 0) return patch
  throw usageError('nothing to change; name a field, such as --priority urgent. See: braidclaw control task edit --help')
}

const changeFlags = { ...noteFlag, ...controlFlags } as const satisfies Flags
const severalTasks = {
  task: { type: 'text', many: true, about: 'Ids, such as TASK-001', complete: proposeTasks },
} as const satisfies Arguments

/** A command that changes several tasks, one after the other; the first refusal ends it. */
function changing(examples: readonly Example[], change: (control: Control, id: string, note: string) => Promise<Task>) {
  return {
    flags: changeFlags,
    args: severalTasks,
    examples,
    exits: controlExits,
    async run(context, given, { task: ids }) {
      await withControl(context, given, async (control) => {
        const changed: Task[] = []
        for (const id of ids.map((each) => idOf('task', each))) changed.push(await change(control, id, given.note ?? ''))
        told(context, changed, given.json)
      })
    },
  } as const satisfies Command<typeof changeFlags, typeof severalTasks>
}

export const cancel = changing(
  [
    ['TASK-001', 'one that runs is told with its next beat'],
    ['TASK-001 TASK-002 --note "no longer needed"', 'several'],
  ],
  (control, id, note) => control.tasks.cancel(id, note),
)

export const retry = changing(
  [
    ['TASK-001', 'one that ended goes back into the queue, with its attempts anew'],
    ['TASK-001 --note "the disk has room again"', 'the note is kept with the event'],
  ],
  (control, id, note) => control.tasks.retry(id, note),
)

const resolveFlags = {
  key: { type: 'text', about: 'Only the effect with this key (default: all that are in doubt)' },
  result: { type: 'text', about: 'What it gave, as JSON, for "done"' },
  ...changeFlags,
} as const satisfies Flags
const resolveArgs = {
  ...taskArgs,
  outcome: {
    type: 'choice',
    values: ['done', 'redo', 'give_up'],
    about: 'done: it happened; redo: it did not, do it again; give_up: the task fails',
  },
} as const satisfies Arguments

export const resolve = {
  flags: resolveFlags,
  args: resolveArgs,
  examples: [
    ['TASK-001 done', 'you looked: the e-mail was sent'],
    ['TASK-001 redo --key send-mail', 'you looked: it was not'],
    ['TASK-001 give_up --note "the customer cancelled"', 'the task fails'],
  ],
  details: () =>
    'A run that was lost between an effect and its record leaves the effect in doubt: it may have happened. Nobody repeats it until you decide.',
  exits: controlExits,
  async run(context, given, { task: id, outcome }) {
    const { key, result, note = '', json } = given
    const request = present({ outcome, note, key, result: result === undefined ? undefined : jsonOf('--result', result) })
    await withControl(context, given, async (control) => told(context, [await control.tasks.resolve(idOf('task', id), request)], json))
  },
} as const satisfies Command<typeof resolveFlags, typeof resolveArgs>

function told(context: CliContext, tasks: readonly Task[], json = false): void {
  const text = tasks.map((task) => `${task.task_id}  ${statusText(task)}  ${oneLine(task.title)}\n`).join('')
  show(context, { json, value: tasks.length === 1 ? tasks[0] : tasks, text })
}
