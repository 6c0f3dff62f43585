/** Refuses callers that may not do something. */

import { type Caller, signatureOf } from './caller.ts'
import { PlaneRefusal } from './plane-refusal.ts'

type Of<K extends Caller['kind']> = Extract<Caller, { readonly kind: K }>

/** @throws PlaneRefusal forbidden */
export function onlyOperator(caller: Caller, what: string): Of<'operator'> {
  if (caller.kind === 'operator') return caller
  throw new PlaneRefusal('forbidden', `only an operator may ${what}; this is ${signatureOf(caller)}`)
}

/** @throws PlaneRefusal forbidden */
export function onlyRun(caller: Caller, what: string): Of<'run'> {
  if (caller.kind === 'run') return caller
  throw new PlaneRefusal('forbidden', `only a run may ${what}, with the token of its lease; this is ${signatureOf(caller)}`)
}

/** The operator, the agent itself or one of its runs. @throws PlaneRefusal forbidden */
export function assertSelf(caller: Caller, agentId: string, what: string): void {
  if (caller.kind === 'operator' || (caller.kind !== 'seed' && caller.id === agentId)) return
  throw new PlaneRefusal('forbidden', `only agent ${agentId} itself or an operator may ${what}; this is ${signatureOf(caller)}`)
}
