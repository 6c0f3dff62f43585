/** A turn as files: agent.jsonl while it runs, the session when it is over. They mirror the journal, which stays the truth. */

import { errorCode, explainErrno } from '../../config/text/read-toml-file.ts'
import type { AgentPaths } from '../../memory/agent-files/agent-paths.ts'
import { readPointer, writePointer } from '../../memory/agent-files/conversation-pointer.ts'
import { appendSession } from '../../memory/agent-files/session-file.ts'
import { appendTrace } from '../../memory/agent-files/trace-file.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import type { Setup, Wish } from '../api.ts'

type Persona = { readonly id: string; readonly paths: AgentPaths }

export type Mirror = {
  /** A turn begins. @param conversationId what `-c` goes on with from now on */
  begin(prompt: string, conversationId?: string): void
  show(event: AgentEvent): void
  /** The turn is over: question and answer go into the session together; a question without an answer goes alone. */
  end(): void
}

/** Secrets are taken out of all that is written. A file that cannot be written is said once, and the turn goes on. */
export function createMirror({ log, redactor }: Pick<Setup, 'log' | 'redactor'>, { id, paths }: Persona): Mirror {
  const turn: { prompt?: string; answer?: string; failed?: boolean } = {}
  const names = new Map<string, string>()

  function trace(event: string, message: string): void {
    keep(() => appendTrace(paths.log, { agent: id, event, message: redactor.text(message) }, Date.now()))
  }

  function keep(write: () => void): void {
    try {
      write()
    } catch (error) {
      if (!turn.failed)
        log('warn', 'the files of the agent cannot be written', { agent: paths.folder, why: explainErrno(errorCode(error)) })
      turn.failed = true
    }
  }

  function show(event: AgentEvent): void {
    if (event.type === 'tool_use') {
      names.set(event.toolCallId, event.toolName)
      trace('tool_call', `${event.toolName} ${JSON.stringify(event.input)}`)
    } else if (event.type === 'tool_result') {
      const text = typeof event.output === 'string' ? event.output : JSON.stringify(event.output ?? '')
      trace(resultEvent(event.status, text), `${names.get(event.toolCallId) ?? event.toolCallId}: ${text}`)
    } else if (event.type === 'approval_gate') trace('approval_asked', `${event.toolName} ${JSON.stringify(event.input)}`)
    else if (event.type === 'error') trace('error', `${event.code}: ${event.message}`)
    else if (event.type === 'done' && event.result !== undefined) {
      turn.answer = event.result
      trace('llm_response', event.result)
    }
  }

  return {
    show,
    begin(prompt, conversationId) {
      Object.assign(turn, { prompt, answer: undefined })
      trace('user_input', prompt)
      if (conversationId !== undefined) keep(() => writePointer(paths.conversation, conversationId))
    },
    end() {
      const { prompt, answer } = turn
      if (prompt === undefined) return
      const said = [{ role: 'user', content: prompt }, ...(answer === undefined ? [] : [{ role: 'assistant', content: answer }])]
      keep(() =>
        appendSession(
          paths.session,
          said.map(({ role, content }) => ({ role, content: redactor.text(content) })),
          Date.now(),
        ),
      )
      turn.prompt = undefined
    },
  }
}

function resultEvent(status: 'completed' | 'failed', text: string): string {
  if (status === 'completed') return 'tool_result'
  return text.startsWith('Denied by ') ? 'denied' : 'tool_failed'
}

/** The conversation that the agent's session is about, or a new one when there is none. */
export function sessionOf({ paths }: Persona): Wish['conversation'] {
  const id = readPointer(paths.conversation)
  return { kind: 'session', ...(id === undefined ? {} : { id }) }
}
