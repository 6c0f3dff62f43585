/** Formats the result of `replay` for a person. */

import type { RunAgain } from '../../../host/records/integrity/run-again.ts'
import { count } from '../../../kit/count.ts'
import type { Rejudgement } from '../../../runtime/replay/rejudge.ts'
import type { Replay } from '../../../runtime/replay/replay.ts'

export function replayLines(runId: string, { events, digest, ended, divergence }: Replay): string[] {
  if (divergence) return [`${runId}: ALTERED, or another program wrote it: ${divergence.message} (journal entry ${divergence.seq})`]
  return [`${runId}: ${ended ? 'the same' : 'the same up to where it was interrupted'}, ${count(events.length, 'event')}, digest ${digest}`]
}

/** Reports what is known without replaying, because the record does not contain the code of a program's own threads. */
export function notRunAgain(runId: string, { missing = [], divergence }: RunAgain): string[] {
  const record = divergence
    ? `its record was ALTERED: ${divergence.message} (journal entry ${divergence.seq})`
    : 'its record is as it was written'
  return [
    `${runId}: not run again: ${missing.join('; ')}`,
    `  ${record}; to run it again, call replay({ runId, threads }) of the library with the threads of the program that ran it (docs/threads.md)`,
  ]
}

/** Lists only the calls and changes that the policy would judge differently, and the changes that are no longer kept. */
export function policyLines(runId: string, { calls, changes = [], divergence, missing = [] }: Rejudgement): string[] {
  const changed = calls.filter((call) => call.changed)
  const head = `${runId}: ${changed.length} of ${count(calls.length, 'call')} would be judged otherwise`
  const lines = changed.map(
    ({ event, id, summary, before, after }) =>
      `  event ${event}, ${id}: ${before.verdict} by ${before.rule} → ${after.verdict} by ${after.rule} (${after.reason})\n    ${summary}`,
  )
  return [
    head,
    ...lines,
    ...changes.flatMap(changeLines),
    ...(missing.length > 0 ? [`  where it would have gone another way is not known: ${missing.join('; ')}`] : []),
    ...(divergence ? [`  first difference: "${divergence.before}" then, "${divergence.after}" now; what came after it is not known`] : []),
  ]
}

function changeLines({ event, id, summary, before, after, changed }: NonNullable<Rejudgement['changes']>[number]): string[] {
  const what = `  event ${event}, the changes of ${id}`
  if (after === undefined) return [`${what}: ${before.verdict} by ${before.rule} as recorded; they are no longer kept, so not judged again`]
  return changed
    ? [`${what}: ${before.verdict} by ${before.rule} → ${after.verdict} by ${after.rule} (${after.reason})\n    ${summary}`]
    : []
}
