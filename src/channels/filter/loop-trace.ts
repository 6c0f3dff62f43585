/** What a tool loop did, in its agent's agent.jsonl: the same lines whoever runs the loop. */

import { personaOf } from '../../host/setup/agent-profile.ts'
import { appendTrace } from '../../memory/agent-files/trace-file.ts'
import type { CliSetup } from '../terminal/context.ts'

export type Trace = (event: string, message: string) => void

/** Secrets are taken out. A log that cannot be written is said once and stops nothing: the journal is the record. @throws FailureError usage for an agent that is not there */
export function traceOf({ config, paths, redactor, log }: CliSetup): Trace {
  const { id, paths: files } = personaOf({ config, paths })
  const state = { failed: false }
  return (event, message) => {
    try {
      appendTrace(files.log, { agent: id, event, message: redactor.text(message) }, Date.now())
    } catch (error) {
      if (!state.failed) log('warn', `${files.log} cannot be written`, { error: String(error) })
      state.failed = true
    }
  }
}

/** What the model is told of a call. */
export function traceResult(
  trace: Trace,
  { name, text, ok }: { readonly name: string; readonly text: string; readonly ok: boolean },
): void {
  const event = ok ? 'tool_result' : text.startsWith('Tool not permitted') ? 'denied' : 'tool_failed'
  trace(event, `${name}: ${text}`)
}
