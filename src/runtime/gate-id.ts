/** Names a gate RUN/CALL: call ids repeat from run to run, and a late answer to one run must not reach another. */

export function gateIdOf(runId: string, callId: string): string {
  return `${runId}/${callId}`
}

/** @returns undefined when the gate does not belong to this run */
export function callIdOf(runId: string, gateId: string): string | undefined {
  const run = gateIdOf(runId, '')
  return gateId.startsWith(run) ? gateId.slice(run.length) : undefined
}
