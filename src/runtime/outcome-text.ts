/** What the model is told of one attempt: live, in a replay, and when a conversation is taken up again. */

import type { Instruction, ToolOutcome } from './event.ts'

/** The output, or why there is none; then what the folders that were touched first want the model to know. */
export function outcomeText({ status, output, error, instructions = [] }: ToolOutcome): string {
  const head = status === 'allowed' ? '' : `${status === 'denied' ? 'Denied' : 'Failed'}: ${error || 'no reason given'}`
  const result = head !== '' && output !== '' ? `${head}\n${output}` : `${head}${output}`
  return [result, ...instructions.map(instructionText)].join('\n\n')
}

function instructionText({ path, text }: Instruction): string {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  return `[BraidClaw adds, once: the user's instructions for ${folder}, from ${path}]\n${text}`
}
