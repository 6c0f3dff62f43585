/** What a tool loop did, in its agent's agent.jsonl: the same lines whoever runs the loop. */

import { type AgentProfile, agentProfileOf } from '../../host/setup/agent-profile.ts'
import { appendSession } from '../../memory/agent-files/session-file.ts'
import { appendTrace } from '../../memory/agent-files/trace-file.ts'
import type { CliSetup } from '../terminal/context.ts'

export type Trace = (event: string, message: string) => void

/** Secrets are taken out. A log that cannot be written is said once and stops nothing: the journal is the record. @throws FailureError usage for an agent that is not there */
export function traceOf({ config, paths, redactor, log }: CliSetup): Trace {
  const { id, paths: files } = agentProfileOf({ config, paths })
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

export type LoopTalk = { asked(question: string): void; answered(answer: string): void; end(): void }

/** Question and answer of a loop that another program runs: no run of ours tells them, so they are lines like those of any other program. */
export function createLoopTalk(setup: CliSetup, { paths }: AgentProfile): LoopTalk {
  const trace = traceOf(setup)
  const said: { role: string; content: string }[] = []
  const keep = (role: string, content: string) => said.push({ role, content: setup.redactor.text(content) })
  return {
    asked(question) {
      trace('user_input', question)
      keep('user', question)
    },
    answered(answer) {
      trace('llm_response', answer)
      keep('assistant', answer)
    },
    end() {
      try {
        appendSession(paths.session, said, Date.now())
      } catch (error) {
        setup.log('warn', `${paths.session} cannot be written`, { error: String(error) })
      }
    },
  }
}
