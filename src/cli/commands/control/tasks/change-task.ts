/** Implements `control task add | edit | cancel | retry | resolve`. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import { priorities } from '../../../../control/contract/state-names.ts'
import type { Task, TaskDraft, TaskPatch } from '../../../../control/contract/task-shapes.ts'
import type { Arguments, Example, Flags, Given } from '../../../args/command.ts'
import { messageOf } from '../../../args/turn-flags.ts'
import { usageError } from '../../../exit.ts'
import { printOne } from '../../../print-list.ts'
import { idOf, jsonObjectOf, jsonOf, nameOf, timeOf, tokensOf } from '../connect/argument-values.ts'
import {
  controlCommand,
  controlFlags,
  noteFlag,
  present,
  proposeControlAgents,
  proposeRoles,
  proposeTasks,
} from '../connect/control-flags.ts'
import type { Control } from '../connect/with-control.ts'
import { statusText } from '../text/control-text.ts'
import { oneLine } from '../text/table.ts'
import { taskArgs } from './task-list.ts'

export const draftFlags = {
  role: { type: 'text', short: 'r', about: 'Which role may claim it', complete: proposeRoles },
  description: { type: 'text', short: 'd', about: 'What exactly is to be done; "-" reads it from stdin' },
  agent: { type: 'text', about: 'Only this agent may claim it', complete: proposeControlAgents },
  priority: { type: 'choice', values: priorities, about: 'Default: medium. Old tasks of a lower priority come up in time' },
  label: { type: 'text', many: true, about: 'A label; may be repeated' },
  after: { type: 'text', many: true, about: 'A task that has to be completed first; may be repeated', complete: proposeTasks },
  at: { type: 'text', about: 'Not before: "in 20m", "18:30", "2026-12-24 09:00", "2026-12-24T09:00:00Z"' },
  tz: { type: 'text', about: 'The time zone of --at, like Europe/Ljubljana (default: the one of this system)' },
  budget: { type: 'text', about: 'The most tokens that all attempts may spend together: 5000, 100k' },
  attempts: { type: 'whole', min: 1, max: 100, about: 'How often it is tried before it is dead (default: 3)' },
  context: { type: 'text', about: 'A JSON object with facts for the agent' },
  check: { type: 'text', about: 'A command that must exit with 0 in the copy, else the attempt failed' },
  parent: { type: 'text', about: 'The task that this one is a part of', complete: proposeTasks },
} as const satisfies Flags

const flags = {
  ...draftFlags,
  idempotencyKey: { type: 'text', about: 'Repeating the command with this key makes no second task' },
  ...controlFlags,
} as const satisfies Flags
const args = {
  title: {
    type: 'text',
    many: true,
    optional: true,
    about: 'What is to be done; without it the first line of stdin, the rest is the description',
  },
} as const satisfies Arguments

export const add = controlCommand({
  flags,
  args,
  examples: [
    ['Check if db jail is running --role sysadmin --priority high', 'its id goes to stdout'],
    ['Vacuum the database --role db-admin --after TASK-001 --at "02:00" --tz Europe/Ljubljana', 'later, and only after another one'],
    ['"Mend the tests" --role git-admin --check "npm test"', 'done when the check passes, not when the model says so'],
    ['--role git-admin --json < task.txt', 'the first line is the title, the rest the description'],
    ['"Send the report" --role mail --idempotency-key report-2026-11-23', 'one task, however often the line runs'],
  ],
  async run({ context, control, json }, given, { title }) {
    const draft = await draftOf(context, given, title)
    const { idempotencyKey: key } = given
    const task = await control.tasks.create(draft, key)
    const waits = task.status === 'pending' ? '' : `, ${task.status}`
    const text = `added for ${task.assigned_to}${waits}: ${oneLine(task.title)}\n`
    // Scripts read the id.
    printOne(context, { json, value: task, text: `${task.task_id}\n` })
    if (!json) context.process.stderr.write(text)
  },
})

type DraftFlags = Given<typeof draftFlags>

/** @throws CliExit 2 for values that cannot be read */
export async function draftOf(context: CliContext, given: DraftFlags, words: readonly string[]): Promise<TaskDraft> {
  const { role, agent, priority = 'medium', label = [], after = [], budget, attempts = 3, parent, at, check, tz: zone } = given
  if (role === undefined) throw usageError('--role is missing: say which role may claim the task, such as --role sysadmin')
  const limit = budget === undefined ? null : tokensOf('--budget', budget)
  return present({
    ...(await textOf(context, given, words)),
    ...{ role: nameOf('--role', role), priority, max_attempts: attempts },
    labels: label.map((each) => nameOf('--label', each)),
    depends_on: after.map((each) => idOf('task', each)),
    context: given.context === undefined ? {} : jsonObjectOf('--context', given.context),
    agent_id: agent && nameOf('--agent', agent),
    parent_task_id: parent && idOf('task', parent),
    budget_tokens: limit ?? undefined,
    check,
    available_at: at === undefined ? undefined : timeOf(at, { zone, now: Date.now(), env: context.env }),
  })
}

async function textOf(
  context: CliContext,
  { description }: DraftFlags,
  words: readonly string[],
): Promise<Pick<TaskDraft, 'title' | 'description'>> {
  const advice = 'say what is to be done: braidclaw control task add TITLE --role ROLE'
  const fromStdin = words.length === 0 || description === '-'
  const piped = fromStdin ? await messageOf({ advice }, context) : ''
  if (piped === undefined) throw usageError(`no title: ${advice}`)
  if (words.length > 0) return { title: words.join(' '), description: description === '-' ? piped : (description ?? '') }
  const [first = '', ...rest] = piped.trim().split('\n')
  return { title: first.trim(), description: description ?? rest.join('\n').trim() }
}

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
  hold: { type: 'boolean', about: 'No worker claims it until --release' },
  release: { type: 'boolean', about: 'Ends --hold' },
  ifVersion: { type: 'whole', about: 'Only while it has this version; "task show" names it' },
  ...controlFlags,
} as const satisfies Flags

export const edit = controlCommand({
  flags: editFlags,
  args: taskArgs,
  examples: [
    ['TASK-001 --priority urgent', 'also while it runs, as labels'],
    ['TASK-001 --hold', 'no worker claims it; --release ends that'],
    ['TASK-001 --budget 200k --if-version 4', 'only when it was not changed since'],
  ],
  async run({ context, control, json }, given, { task }) {
    const id = idOf('task', task)
    const patch = patchOf(context, given)
    printTasks(context, [await control.tasks.edit(id, patch, given.ifVersion)], json)
  },
})

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

/** Makes a command that changes several tasks, one after the other; the first refusal ends it. */
function changing(examples: readonly Example[], change: (control: Control, id: string, note: string) => Promise<Task>) {
  return controlCommand({
    flags: changeFlags,
    args: severalTasks,
    examples,
    async run({ context, control, json }, given, { task: ids }) {
      const changed: Task[] = []
      for (const id of ids.map((each) => idOf('task', each))) changed.push(await change(control, id, given.note ?? ''))
      printTasks(context, changed, json)
    },
  })
}

export const cancel = changing(
  [
    ['TASK-001', 'a running task learns of it with its next heartbeat'],
    ['TASK-001 TASK-002 --note "no longer needed"', 'several'],
  ],
  (control, id, note) => control.tasks.cancel(id, note),
)

export const retry = changing(
  [
    ['TASK-001', 'a task that has ended is queued again; its attempts start at 0'],
    ['TASK-001 --note "the disk has room again"', 'the note is kept with the event'],
  ],
  (control, id, note) => control.tasks.retry(id, note),
)

export const resolve = controlCommand({
  flags: {
    key: { type: 'text', about: 'Only the effect with this key (default: all that are in doubt)' },
    result: { type: 'text', about: 'Its result, as JSON, for "done"' },
    ...changeFlags,
  },
  args: {
    ...taskArgs,
    outcome: {
      type: 'choice',
      values: ['done', 'redo', 'give_up'],
      about: 'done: it happened; redo: it did not, do it again; give_up: the task fails',
    },
  },
  examples: [
    ['TASK-001 done', 'you looked: the e-mail was sent'],
    ['TASK-001 redo --key send-mail', 'you looked: it was not'],
    ['TASK-001 give_up --note "the customer cancelled"', 'the task fails'],
  ],
  details: () =>
    'A run that was lost between an effect and its record leaves the effect in doubt: it may have happened. It is not repeated until you decide.',
  async run({ context, control, json }, { key, result, note = '' }, { task: id, outcome }) {
    const request = present({ outcome, note, key, result: result === undefined ? undefined : jsonOf('--result', result) })
    printTasks(context, [await control.tasks.resolve(idOf('task', id), request)], json)
  },
})

function printTasks(context: CliContext, tasks: readonly Task[], json = false): void {
  const text = tasks.map((task) => `${task.task_id}  ${statusText(task)}  ${oneLine(task.title)}\n`).join('')
  printOne(context, { json, value: tasks.length === 1 ? tasks[0] : tasks, text })
}
