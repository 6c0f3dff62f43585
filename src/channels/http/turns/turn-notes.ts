/** Collects what a turn did while it runs, for an answer that tells all of it at once. */

import type { Conversation, Host } from '../../../host/api.ts'
import type { AgentEvent, Ending } from '../../../runtime/event.ts'
import { snake } from '../snake.ts'

type ToolCall = { readonly id: string; readonly name: string; readonly input: unknown; status: string }

type Ended = { readonly conversation: Conversation; readonly ending: Ending; readonly host: Pick<Host, 'receiptsOf'> }

export function createTurnNotes() {
  const calls = new Map<string, ToolCall>()
  const seen = { text: '' }
  return {
    show(event: AgentEvent): void {
      if (event.type === 'tool_use')
        calls.set(event.toolCallId, { id: event.toolCallId, name: event.toolName, input: event.input, status: 'not finished' })
      const call = event.type === 'tool_result' ? calls.get(event.toolCallId) : undefined
      if (call && event.type === 'tool_result') call.status = event.status
      if (event.type === 'done' && event.result !== undefined) seen.text = event.result
    },
    told({ conversation, ending: { code, message }, host }: Ended) {
      const runId = conversation.runId()
      const used = conversation.usage()
      return {
        conversation_id: conversation.id,
        run_id: runId ?? null,
        text: seen.text,
        ending: { code, message },
        tool_calls: [...calls.values()],
        receipts: calls.size > 0 && runId !== undefined ? [...host.receiptsOf(runId)] : [],
        approvals: [...conversation.unanswered()],
        usage: used ? snake(used) : null,
      }
    },
  }
}
