/**
 * Runs any program as a runner: it reads the task as one JSON object from its standard input, and may print JSON lines about what it does.
 */

import type { ForeignRunner, RunnerEvent } from './runner.ts'
import { countIn, fieldsOf, textIn } from './runner.ts'

/** `argv`: the program and its arguments, exactly as the operator gave them; nothing of a task is added to them. */
export function commandRunner([program = '', ...fixed]: readonly string[]): ForeignRunner {
  return {
    name: 'command',
    program,
    install: 'name a program that exists, after "--": --runner command -- PROGRAM [ARGUMENT…]',
    argv: () => fixed,
    stdin: ({ task, runId, prompt, skillIndex, workspace, resumes }) =>
      `${JSON.stringify({ task, run_id: runId, prompt, skill_index: skillIndex, workspace, resumes })}\n`,
    env: () => ({}),
    files: () => [],
    parse: parseCommandLine,
  }
}

/** `{"type":"text","text"}`, `{"type":"tool","name"}`, `{"type":"usage","tokens"}`, `{"type":"result","ok","output","skill"?}`; else text. */
function parseCommandLine(line: string): readonly RunnerEvent[] {
  const fields = fieldsOf(line)
  if (!fields) return line.trim() === '' ? [] : [{ type: 'text', text: line }]
  const type = textIn(fields, 'type')
  if (type === 'text') return [{ type, text: textIn(fields, 'text') }]
  if (type === 'tool') return [{ type, name: textIn(fields, 'name') }]
  if (type === 'usage') return [{ type, tokens: countIn(fields, 'tokens') }]
  if (type !== 'result') return []
  const skill = textIn(fields, 'skill')
  return [{ type, ok: fields?.ok !== false, output: textIn(fields, 'output'), skill: skill || undefined }]
}
