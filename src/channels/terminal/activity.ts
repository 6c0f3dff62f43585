/** Tracks the activity of a run for the status line: the model thinks, or tools run. */

import type { AgentEvent } from '../../runtime/event.ts'
import type { Render } from './render.ts'
import type { StatusLine } from './status-line.ts'

/** Wraps a render so that the status line shows the current activity. `paused` hides the line while a question is open. */
export function withActivity(
  render: Render,
  status: Pick<StatusLine, 'begin' | 'end'>,
): Render & { paused<T>(question: Promise<T>): Promise<T> } {
  const running = new Map<string, string>()
  const go = () => status.begin(labelOf([...running.values()]))
  const follow = (event: AgentEvent) => {
    if (event.type === 'tool_use') running.set(event.toolCallId, event.toolName)
    else if (event.type === 'tool_result') running.delete(event.toolCallId)
    else if (event.type !== 'init') return
    go()
  }
  return {
    show(event) {
      if (event.type === 'done') status.end()
      render.show(event)
      follow(event)
    },
    end(summary) {
      status.end()
      render.end(summary)
    },
    async paused(question) {
      status.end()
      try {
        return await question
      } finally {
        go()
      }
    },
  }
}

function labelOf(tools: readonly string[]): string {
  const [only = 'thinking'] = tools
  return tools.length > 1 ? `${tools.length} tools` : only
}
