/** What `replay` found, in lines for a person. */

import { count } from '../../../kit/count.ts'
import type { Rejudgement } from '../../../runtime/replay/rejudge.ts'
import type { Replay } from '../../../runtime/replay/replay.ts'

export function replayLines(runId: string, { events, digest, ended, divergence }: Replay): string[] {
  if (divergence) return [`${runId}: ALTERED, or another program wrote it: ${divergence.message} (journal entry ${divergence.seq})`]
  return [`${runId}: ${ended ? 'the same' : 'the same up to where it was interrupted'}, ${count(events.length, 'event')}, digest ${digest}`]
}

/** Only calls that would be judged otherwise are listed. */
export function policyLines(runId: string, { calls, divergence }: Rejudgement): string[] {
  const changed = calls.filter((call) => call.changed)
  const head = `${runId}: ${changed.length} of ${count(calls.length, 'call')} would be judged otherwise`
  const lines = changed.map(
    ({ event, id, summary, before, after }) =>
      `  event ${event}, ${id}: ${before.verdict} by ${before.rule} → ${after.verdict} by ${after.rule} (${after.reason})\n    ${summary}`,
  )
  return [
    head,
    ...lines,
    ...(divergence ? [`  first difference: "${divergence.before}" then, "${divergence.after}" now; what came after it is not known`] : []),
  ]
}
