/** Writes what a tool loop did to its agent's agent.jsonl: the lines are the same for every loop. */

import { type AgentProfile, agentProfileOf } from '../../host/setup/agent-profile.ts'
import { appendSession, appendTrace } from '../../memory/agent-files/session-file.ts'
import type { CliSetup } from '../terminal/context.ts'

export type Trace = (event: string, message: string) => void

/**
 * Redacts secrets. `file`, when it is not empty, replaces the agent.jsonl. An unwritable log causes one warning and stops nothing, because the journal is the record. @throws FailureError `usage`
 * for an agent that does not exist
 */
export function traceOf({ config, paths, redactor, log }: CliSetup, file = ''): Trace {
  const { id, paths: files } = agentProfileOf({ config, paths })
  const path = file || files.log
  const state = { failed: false }
  return (event, message) => {
    try {
      appendTrace(path, { agent: id, event, message: redactor.text(message) }, Date.now())
    } catch (error) {
      if (!state.failed) log('warn', `${path} cannot be written`, { error: String(error) })
      state.failed = true
    }
  }
}

/** Traces the result of a call as the model gets it. */
export function traceResult(
  trace: Trace,
  { name, text, ok }: { readonly name: string; readonly text: string; readonly ok: boolean },
): void {
  const event = ok ? 'tool_result' : text.startsWith('Tool not permitted') ? 'denied' : 'tool_failed'
  trace(event, `${name}: ${text}`)
}

/**
 * Records question and answer of an external loop: no run of ours writes them, so they become session lines like those of any other
 * program.
 */
export function createLoopTalk(setup: CliSetup, { paths }: AgentProfile) {
  const trace = traceOf(setup)
  const lines: { role: string; content: string }[] = []
  const keep = (role: string, content: string) => lines.push({ role, content: setup.redactor.text(content) })
  return {
    asked(question: string) {
      trace('user_input', question)
      keep('user', question)
    },
    answered(answer: string) {
      trace('llm_response', answer)
      keep('assistant', answer)
    },
    end() {
      try {
        appendSession(paths.session, lines, Date.now())
      } catch (error) {
        setup.log('warn', `${paths.session} cannot be written`, { error: String(error) })
      }
    },
  }
}
