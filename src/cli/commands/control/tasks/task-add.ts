/** Implements `control task add`. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import { priorities } from '../../../../control/contract/state-names.ts'
import type { TaskDraft } from '../../../../control/contract/task-shapes.ts'
import type { Arguments, Command, Flags, Given } from '../../../args/command.ts'
import { messageOf } from '../../../args/message-text.ts'
import { usageError } from '../../../exit.ts'
import { controlExits, controlFlags, present } from '../connect/control-flags.ts'
import { proposeControlAgents, proposeRoles, proposeTasks } from '../connect/control-names.ts'
import { idOf, nameOf } from '../connect/ids.ts'
import { showId } from '../connect/screen.ts'
import { withControl } from '../connect/with-control.ts'
import { oneLine } from '../text/table.ts'
import { jsonObjectOf, timeOf, tokensOf } from './read-draft.ts'

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

export const add = {
  flags,
  args,
  examples: [
    ['Check if db jail is running --role sysadmin --priority high', 'its id goes to stdout'],
    ['Vacuum the database --role db-admin --after TASK-001 --at "02:00" --tz Europe/Ljubljana', 'later, and only after another one'],
    ['--role git-admin --json < task.txt', 'the first line is the title, the rest the description'],
    ['"Send the report" --role mail --idempotency-key report-2026-11-23', 'one task, however often the line runs'],
  ],
  exits: controlExits,
  async run(context, given, { title }) {
    const draft = await draftOf(context, given, title)
    const { idempotencyKey: key } = given
    await withControl(context, given, async (control) => {
      const task = await control.tasks.create(draft, key)
      const waits = task.status === 'pending' ? '' : `, ${task.status}`
      const text = `added for ${task.assigned_to}${waits}: ${oneLine(task.title)}\n`
      showId(context, { json: given.json ?? false, value: task, id: task.task_id, text })
    })
  },
} as const satisfies Command<typeof flags, typeof args>

type DraftFlags = Given<typeof draftFlags>

/** @throws CliExit 2 for values that cannot be read */
export async function draftOf(context: CliContext, given: DraftFlags, words: readonly string[]): Promise<TaskDraft> {
  const { role, agent, priority = 'medium', label = [], after = [], budget, attempts = 3, parent, at, tz: zone } = given
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
    available_at: at === undefined ? undefined : timeOf(at, { zone, now: Date.now(), env: context.env }),
  })
}

type TaskWords = Pick<TaskDraft, 'title' | 'description'>

async function textOf(context: CliContext, { description }: DraftFlags, words: readonly string[]): Promise<TaskWords> {
  const advice = 'say what is to be done: braidclaw control task add TITLE --role ROLE'
  const fromStdin = words.length === 0 || description === '-'
  const piped = fromStdin ? await messageOf({ advice }, context) : ''
  if (piped === undefined) throw usageError(`no title: ${advice}`)
  if (words.length > 0) return { title: words.join(' '), description: description === '-' ? piped : (description ?? '') }
  const [first = '', ...rest] = piped.trim().split('\n')
  return { title: first.trim(), description: description ?? rest.join('\n').trim() }
}
