/** Renders a run for programs: one JSON object, or one AgentEvent a line (docs/json.md). */

import type { ClaimMark } from '../../host/contract/claim-mark.ts'
import type { AgentEvent, ContextUse } from '../../runtime/event.ts'
import type { OutputFormat, Render, RunSummary, Screen } from '../terminal/render.ts'

export function createJsonRender(format: OutputFormat, screen: Screen): Render {
  return format === 'json' ? oneJson(screen) : streamJson(screen)
}

/** The last line waits for the summary, which adds the use of the window to it. */
function streamJson({ out }: Screen): Render {
  let done: AgentEvent | undefined
  return {
    show(event) {
      if (event.type === 'done') done = event
      else out.write(streamLine(event))
    },
    end: (summary) => done && out.write(streamLine({ ...done, ...spentIn(summary) }, summary.context, summary.proof)),
  }
}

/** Returns one line of stream-json; that of `done` names the use of the window, if that is known, and what proves the answer's claims. */
export function streamLine(event: AgentEvent, context?: ContextUse, proof: readonly ClaimMark[] = []): string {
  return `${JSON.stringify(event.type === 'done' ? { ...event, ...known({ context, proof }) } : event)}\n`
}

function known({ context, proof = [] }: Pick<RunSummary, 'context' | 'proof'>) {
  return { ...(context?.window !== undefined && { context }), ...(proof.length > 0 && { proof }) }
}

/** Returns what the turn took, for programs; docs/json.md. */
function spentIn({ usage = { inputTokens: 0, outputTokens: 0 }, model, durationMs }: RunSummary) {
  const at = model.indexOf('/')
  return { usage, model: model.slice(at + 1), provider: model.slice(0, at), durationMs }
}

function oneJson({ out }: Screen): Render {
  type Seen = { result?: string; tools: { name: string; status?: string }[]; errors: { code: string; message: string }[] }
  const seen: Seen = { tools: [], errors: [] }
  const ids: string[] = []
  return {
    show(event) {
      if (event.type === 'tool_use') {
        ids.push(event.toolCallId)
        seen.tools.push({ name: event.toolName })
      } else if (event.type === 'tool_result') {
        const tool = seen.tools[ids.indexOf(event.toolCallId)]
        if (tool) tool.status = event.status
      } else if (event.type === 'error') seen.errors.push({ code: event.code, message: event.message })
      else if (event.type === 'done' && event.result !== undefined) seen.result = event.result
    },
    end(summary) {
      const { ending, exitCode, runId, conversationId, more } = summary
      const { result = null, tools, errors } = seen
      const end = { result, ending: ending.code, stopReason: ending.stop, message: ending.message, exitCode, runId, conversationId }
      out.write(`${JSON.stringify({ ...end, ...spentIn(summary), tools, errors, ...known(summary), ...more })}\n`)
    },
  }
}
