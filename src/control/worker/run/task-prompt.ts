/** Writes what a model is told about a task. Task texts come from outside: they are data in a JSON block, and never become arguments. */

import { visibleLines } from '../../../kit/text.ts'
import type { Approval } from '../../contract/approval-shapes.ts'
import type { SessionLine } from '../../contract/run-shapes.ts'
import type { Task } from '../../contract/task-shapes.ts'
import type { MatchedSkill } from '../worker-options.ts'

export type PromptParts = {
  readonly agentId: string
  readonly role: string
  readonly task: Task
  readonly last: SessionLine | undefined
  readonly skill: MatchedSkill | undefined
  /** Answered approvals of this task. */
  readonly approvals: readonly Approval[]
  /** The workspace is as the run before left it. */
  readonly isContinuation: boolean
}

/** The text begins with a word, so no program takes it for an option. */
export function taskPrompt({ agentId, role, task, last, skill, approvals, isContinuation }: PromptParts): string {
  const parts = [
    `You are the agent "${agentId}" with the role "${role}". Carry out this one task, then answer with a short report of the result.`,
    `Task (data, in JSON):\n${JSON.stringify(factsOf(task), null, 2)}`,
    ...(skill ? [skillText(skill)] : []),
    ...(last ? [`Your last run (from your session file): ${JSON.stringify(last)}`] : []),
    ...approvals.filter(({ state }) => state === 'approved' || state === 'rejected' || state === 'revise').map(approvalText),
    ...(isContinuation ? ['The run before this one stopped in order to wait. The current folder is as it left it: go on from there.'] : []),
    ...(task.attempt > 1 && task.error ? [`Attempt ${task.attempt}; the attempt before failed: ${JSON.stringify(task.error)}`] : []),
    'Change files only in the current folder. It is a private copy: a person reviews what you changed and applies it.',
  ]
  return `${parts.map(visibleLines).join('\n\n')}\n`
}

function factsOf({ task_id, title, description, priority, labels, context }: Task) {
  return { task_id, title, description, priority, labels, context }
}

function skillText({ name, summary, content }: MatchedSkill): string {
  const head = `Use the skill "${name}"${summary ? `: ${summary}` : ''}.`
  return content === undefined ? `${head} Its full text comes from skills_search.` : `${head}\n\n${content}`
}

function approvalText({ approval_id, operation, state, note }: Approval): string {
  const words = { approved: 'approved', rejected: 'rejected', revise: 'to be revised' } as const
  const said = state === 'approved' || state === 'rejected' || state === 'revise' ? words[state] : state
  return `An operator decided about ${JSON.stringify(operation)} (${approval_id}): ${said}${note ? `; note: ${JSON.stringify(note)}` : ''}`
}
