/** Implements `control approvals list | show`. */

import { approvalStates } from '../../../../control/contract/state-names.ts'
import type { Arguments, Command, Flags } from '../../../args/command.ts'
import { printList } from '../../../print-list.ts'
import { controlExits, controlFlags } from '../connect/control-flags.ts'
import { proposeApprovals, proposeControlAgents, proposeTasks } from '../connect/control-names.ts'
import { idOf } from '../connect/ids.ts'
import { present } from '../connect/present.ts'
import { show as print, terminalWidth } from '../connect/screen.ts'
import { withControl } from '../connect/with-control.ts'
import { approvalLines, approvalText } from '../text/approval-text.ts'

const listFlags = {
  state: { type: 'choice', values: approvalStates, about: 'Only in this state (default: pending)' },
  all: { type: 'boolean', about: 'In every state' },
  agent: { type: 'text', about: 'Only of this agent', complete: proposeControlAgents },
  task: { type: 'text', about: 'Only of this task', complete: proposeTasks },
  limit: { type: 'whole', min: 1, max: 200, default: 50, about: 'How many at most' },
  after: { type: 'text', about: 'Go on behind this approval of the list before' },
  ...controlFlags,
} as const satisfies Flags

export const list = {
  flags: listFlags,
  examples: [
    ['', 'what waits for an answer'],
    ['--all --agent git-admin', 'also what was answered'],
  ],
  exits: controlExits,
  async run(context, given) {
    const { state = 'pending', all = false, agent, task, limit, after, json = false } = given
    const query = present({
      state: all ? undefined : state,
      agent_id: agent,
      task_id: task && idOf('task', task),
      limit,
      after: after && idOf('approval', after),
    })
    await withControl(context, given, async (control) => {
      const { approvals, next } = await control.approvals.list(query)
      const none = all ? 'nobody asked for an approval' : `no approval is ${state}`
      printList(context, { items: approvals, json, lines: approvalLines(approvals, Date.now(), terminalWidth()), none })
      if (next !== null) context.process.stderr.write(`more: add --after ${next}\n`)
    })
  },
} as const satisfies Command<typeof listFlags>

const showArgs = { approval: { type: 'text', about: 'Its id, such as APPR-042', complete: proposeApprovals } } as const satisfies Arguments

export const show = {
  flags: controlFlags,
  args: showArgs,
  examples: [['APPR-042', 'exactly what is asked, by whom and why']],
  exits: controlExits,
  async run(context, given, { approval: id }) {
    await withControl(context, given, async (control) => {
      const approval = await control.approvals.get(idOf('approval', id))
      print(context, { json: given.json ?? false, value: approval, text: approvalText(approval, Date.now()) })
    })
  },
} as const satisfies Command<typeof controlFlags, typeof showArgs>
