/** Keeps a dry run from changing anything: commands run on private views only, which are never applied, and writing tools do not run. */

import type { ToolOutcome } from '../../runtime/event.ts'
import { notApplied } from '../../runtime/outcome.ts'
import type { ChangePorts, Tool } from '../../runtime/port.ts'
import type { Spawn } from '../../tools/process.ts'

/** `hasViews`: whether private views work here, or why not. */
export type Confining = {
  readonly spawn: Spawn
  readonly hasViews: () => Promise<{ readonly transaction: boolean; readonly why?: string }>
}

export function dryRunSpawn({ spawn, hasViews }: Confining): Spawn {
  return async (plan) => {
    if (plan.transfer) return { ok: false, message: `a dry run reaches no git server, so git ${plan.transfer.operation} was not run` }
    if (plan.readOnly) return spawn(plan)
    const { transaction, why } = await hasViews()
    if (transaction && plan.view !== 'direct') return spawn({ ...plan, view: 'private' })
    const reason = transaction ? 'the call asks for the workspace itself' : `there are no private views here${why ? ` (${why})` : ''}`
    return { ok: false, message: `a dry run needs a private view of the workspace, and ${reason}; nothing was run` }
  }
}

/** @param isCommand whether the tool starts a confined child */
export function refusedInDryRun(tool: Pick<Tool, 'name' | 'risk'> | undefined, isCommand: boolean): ToolOutcome | undefined {
  if (isCommand || tool?.risk === 'low') return undefined
  return { status: 'denied', output: '', error: `dry_run: ${tool?.name ?? 'this tool'} would have an effect; nothing was done` }
}

/** A yes changes nothing either. */
export function neverApplied(changes: ChangePorts): ChangePorts {
  return {
    drop: changes.drop,
    apply(event, _signal, outcome) {
      const reason = 'this is a dry run'
      changes.drop({ ...event, type: 'drop', outcome, by: 'dry_run', reason })
      return Promise.resolve(notApplied(outcome, 'denied', reason))
    },
  }
}
