/** Formats the outcome of one attempt for the model: live, in a replay, and when a conversation resumes. */

import type { Instruction, InternalEvent, ToolOutcome } from '../event.ts'
import { isPending } from './change-outcome.ts'

/** Returns the output, or why there is none, followed by the instructions of the folders that the call touched first. */
export function outcomeText({ status, output, error, instructions = [] }: ToolOutcome): string {
  const head = status === 'allowed' ? '' : `${status === 'denied' ? 'Denied' : 'Failed'}: ${error || 'no reason given'}`
  const result = head !== '' && output !== '' ? `${head}\n${output}` : `${head}${output}`
  return [result, ...instructions.map(instructionText)].join('\n\n')
}

type Drop = Extract<InternalEvent, { type: 'drop' }>

/** Tells what the command did, that its changes are not in the workspace, and why. */
export function dropText(drop: Pick<Drop, 'by' | 'reason' | 'outcome'> & { readonly review: Pick<Drop['review'], 'summary'> }): string {
  const { by, reason, review, outcome } = drop
  const lost = by === 'approval.nobody' ? '; they could not be kept for a later yes' : ''
  const fate = isPending(drop)
    ? `they wait for a person's yes and are not in the workspace (${by}: ${reason})`
    : `they were dropped by ${by}: ${reason}${lost}; the workspace is as it was before the command`
  return `The command ran, but its changes were not applied: ${fate}.\nNot applied: ${review.summary}\nWhat the command printed:\n${outcomeText(outcome)}`
}

function instructionText({ path, text }: Instruction): string {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  return `[BraidClaw adds, once: the user's instructions for ${folder}, from ${path}]\n${text}`
}
