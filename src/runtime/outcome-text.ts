/** Formats the outcome of one attempt for the model: live, in a replay, and when a conversation resumes. */

import type { Instruction, ToolOutcome } from './event.ts'

/** Returns the output, or why there is none, followed by the instructions of the folders that the call touched first. */
export function outcomeText({ status, output, error, instructions = [] }: ToolOutcome): string {
  const head = status === 'allowed' ? '' : `${status === 'denied' ? 'Denied' : 'Failed'}: ${error || 'no reason given'}`
  const result = head !== '' && output !== '' ? `${head}\n${output}` : `${head}${output}`
  return [result, ...instructions.map(instructionText)].join('\n\n')
}

function instructionText({ path, text }: Instruction): string {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  return `[BraidClaw adds, once: the user's instructions for ${folder}, from ${path}]\n${text}`
}
