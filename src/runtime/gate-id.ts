/** Names a gate RUN/CALL: call ids repeat from run to run, and a late answer to one run must not reach another. */

/**
 * The gate about a call's changes has a name of its own, because the same call may have had a gate before it ran. No run's id begins with
 * "changes:".
 */
export function gateIdOf(runId: string, callId: string, about: 'call' | 'changes' = 'call'): string {
  return `${about === 'changes' ? changes : ''}${runId}/${callId}`
}

/** @returns undefined when the gate does not belong to this run */
export function callIdOf(runId: string, gateId: string): string | undefined {
  const bare = gateId.startsWith(changes) ? gateId.slice(changes.length) : gateId
  const run = gateIdOf(runId, '')
  return bare.startsWith(run) ? bare.slice(run.length) : undefined
}

const changes = 'changes:'
