/** Implements `control task list | show | log`. */

import { taskStatuses } from '../../../../control/contract/state-names.ts'
import type { Task, TaskQuery } from '../../../../control/contract/task-shapes.ts'
import type { Arguments, Flags, Given } from '../../../args/command.ts'
import { printList, printOne } from '../../../print-list.ts'
import { idOf } from '../connect/argument-values.ts'
import { controlCommand, controlFlags, present, proposeControlAgents, proposeRoles, proposeTasks } from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { printEvents } from '../runs/control-events.ts'
import { effectLines, runLines, taskLines, taskText } from '../text/control-text.ts'

const listFlags = {
  role: { type: 'text', short: 'r', about: 'Only of this role', complete: proposeRoles },
  agent: { type: 'text', about: 'Only of this agent', complete: proposeControlAgents },
  status: { type: 'choice', values: taskStatuses, about: 'Only with this status' },
  open: { type: 'boolean', about: 'Only tasks that have not ended' },
  label: { type: 'text', about: 'Only with this label' },
  search: { type: 'text', short: 's', about: 'Only with this text in title or description' },
  parent: { type: 'text', about: 'Only parts of this task', complete: proposeTasks },
  order: { type: 'choice', values: ['newest', 'queue'], about: 'Newest first (default), or as they will be claimed' },
  limit: { type: 'whole', min: 1, max: 200, default: 50, about: 'How many at most' },
  after: { type: 'text', about: 'Continue after this task of the previous list' },
  ...controlFlags,
} as const satisfies Flags

export const taskArgs = { task: { type: 'text', about: 'Its id, such as TASK-001', complete: proposeTasks } } as const satisfies Arguments

export const list = controlCommand({
  flags: listFlags,
  examples: [
    ['', 'the latest 50'],
    ['--open --role sysadmin --order queue', 'what this role does next'],
    ['--status dead --json', 'for scripts'],
  ],
  async run({ context, control, json }, given) {
    const { tasks, next } = await listed(control, queryOf(given), given.limit)
    const none = 'no tasks here; braidclaw control task add --help shows how to make one'
    printList(context, { items: tasks, json, lines: taskLines(tasks, Date.now(), terminalWidth()), none })
    if (next !== null) context.process.stderr.write(`more: add --after ${next}\n`)
  },
})

/** Asks again until a search has found enough tasks or has read all: each request reads only a part. */
async function listed({ tasks: { list } }: Pick<Control, 'tasks'>, query: TaskQuery, limit: number) {
  const found: Task[] = []
  for (let after = query.after; ; ) {
    const page = await list({ ...query, after, limit: limit - found.length })
    found.push(...page.tasks)
    if (query.q === undefined || page.next === null || found.length >= limit) return { tasks: found, next: page.next }
    after = page.next
  }
}

function queryOf(given: Given<typeof listFlags>): TaskQuery {
  const { role, agent, status, open, label, search, parent, order = 'newest', limit, after } = given
  return present({
    role,
    agent_id: agent,
    status,
    open,
    label,
    q: search,
    parent_task_id: parent && idOf('task', parent),
    order,
    limit,
    after: after && idOf('task', after),
  })
}

export const show = controlCommand({
  args: taskArgs,
  examples: [
    ['TASK-001', 'everything that is known of it: result, error, effects, runs'],
    ['TASK-001 --json', 'for scripts'],
  ],
  async run({ context, control, json }, _, { task: typed }) {
    const id = idOf('task', typed)
    const [task, effects, { runs }] = await Promise.all([
      control.tasks.get(id),
      control.tasks.effects(id),
      control.runs.list({ task_id: id, limit: 20 }),
    ])
    const now = Date.now()
    const more = [effectLines(effects, terminalWidth()), runs.length === 0 ? [] : runLines(runs, now, terminalWidth())].filter(
      (lines) => lines.length > 0,
    )
    const text = [taskText(task, now), ...more.map((lines) => `${lines.join('\n')}\n`)].join('\n')
    printOne(context, { json, value: { ...task, effects, runs }, text })
  },
})

export const log = controlCommand({
  flags: { follow: { type: 'boolean', short: 'f', about: 'Continue to print what happens to it, until Ctrl-C' }, ...controlFlags },
  args: taskArgs,
  examples: [
    ['TASK-001', 'what happened to it: who claimed it, which runs, approvals, its end'],
    ['TASK-001 -f', 'and what follows'],
  ],
  details: () => 'What a runner printed is the log of its run: braidclaw control run log RUN',
  exits: [130],
  async run({ context, control, json, signal }, { follow = false }, { task }) {
    await printEvents(context, control, { query: { task_id: idOf('task', task) }, after: 0, follow, json, signal })
  },
})
