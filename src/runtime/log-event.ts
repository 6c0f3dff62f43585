/** Writes log lines for the events of a run. */

import type { RunEvent } from './event.ts'
import type { Log } from './port.ts'

/** Writes the log lines of seed 001 for one selected event. */
export function logEvent(event: RunEvent, log: Log): void {
  if (event.type === 'propose')
    log('info', 'tool requested', { tool: event.call.name, risk: event.judgement.risk, call: event.judgement.summary })
  else if (event.type === 'approval.decision' && event.allow) log('info', 'tool approved', { call: event.id, by: event.by })
  else if (event.type === 'deny') log('info', 'tool denied', { tool: event.call.name, by: event.by, reason: event.reason })
  else if (event.type === 'drop') log('info', 'changes dropped', { tool: event.call.name, by: event.by, reason: event.reason })
  else if (event.type === 'apply')
    log('info', 'changes applied', { tool: event.call.name, digest: event.review.digest, count: event.review.count })
  else if (event.type === 'tool.done') {
    const { status, error } = event.outcome
    if (status === 'allowed') log('info', 'tool completed', { call: event.id })
    else log('info', status === 'denied' ? 'tool denied' : 'tool failed', { call: event.id, error })
  } else if (event.type === 'model.fail' && event.code !== 'aborted')
    log('info', 'provider failed', { code: event.code, message: event.message })
}
