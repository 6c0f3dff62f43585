/**
 * Reads from the journal what took time in the runs of a home: turns, model calls, tool calls. Pure: the same entries give the same spans.
 */

import type { FeedEntry } from '../../../memory/journal/journal-feed.ts'
import type { Ending, Usage } from '../../../runtime/event.ts'
import { consequenceIn, externalOf } from '../../../runtime/replay/external-entry.ts'
import { member } from '../project-feed.ts'

/** Times in milliseconds since 1970. */
type Timed = {
  readonly runId: string
  readonly conversationId: string
  readonly channel: string
  readonly start: number
  readonly end: number
}

/**
 * `error`: the failure code; then `usage` is absent. `start` of a tool is when it began to run, or, for a call that never ran, when the model
 * asked for it.
 */
export type Span = Timed &
  (
    | { readonly kind: 'turn'; readonly model: string; readonly code: Ending['code']; readonly message: string }
    | { readonly kind: 'model'; readonly model: string; readonly provider?: string; readonly usage?: Usage; readonly error?: string }
    | { readonly kind: 'tool'; readonly callId: string; readonly tool: string; readonly status: 'allowed' | 'denied' | 'failed' }
  )

type RunTimes = {
  readonly started: number
  readonly model: string
  /** Since when the model may have been thinking. */
  thinking: number
  readonly calls: Map<string, { readonly tool: string; start: number }>
}

/** Runs whose process died never end here; the oldest are forgotten. */
const mostRuns = 1_000

/** Call it with the entries of all runs in order. Of a run whose beginning it has not seen it gives only what it can time. */
export function createSpanReader(): (entry: FeedEntry) => readonly Span[] {
  const runs = new Map<string, RunTimes>()

  function begin(runId: string, at: number, model: string): RunTimes {
    const run: RunTimes = { started: at, model, thinking: at, calls: new Map() }
    runs.set(runId, run)
    const [oldest] = runs.keys()
    if (runs.size > mostRuns && oldest !== undefined) runs.delete(oldest)
    return run
  }

  return (entry) => {
    const { runId, at } = entry
    const event = externalOf(entry) ?? consequenceIn(entry)
    if (!event) return []
    const run = event.type === 'run.start' ? begin(runId, at, event.model) : (runs.get(runId) ?? begin(runId, at, ''))
    const timed = { runId, conversationId: entry.conversationId ?? '', channel: entry.channel ?? '', end: at }
    switch (event.type) {
      case 'model.done':
        for (const { call } of event.proposals) run.calls.set(call.id, { tool: call.name, start: at })
        return [
          { ...timed, kind: 'model', start: run.thinking, model: event.model, ...member('provider', event.provider), usage: event.usage },
        ]
      case 'model.fail':
        return event.code === 'aborted' ? [] : [{ ...timed, kind: 'model', start: run.thinking, model: run.model, error: event.code }]
      case 'act': {
        run.calls.set(event.id, { tool: event.call.name, start: at })
        return []
      }
      case 'tool.done':
      case 'drop':
      case 'deny': {
        const call = run.calls.get(event.id)
        run.calls.delete(event.id)
        run.thinking = at
        if (!call) return []
        const status = event.type === 'tool.done' ? event.outcome.status : 'denied'
        return [{ ...timed, kind: 'tool', start: call.start, callId: event.id, tool: call.tool, status }]
      }
      case 'finish':
        runs.delete(runId)
        return [{ ...timed, kind: 'turn', start: run.started, model: run.model, code: event.ending.code, message: event.ending.message }]
      default:
        return []
    }
  }
}
