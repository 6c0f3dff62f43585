/** Defines who sends a request to the control plane, and what each kind of sender may do. */

import { PlaneRefusal } from './plane-refusal.ts'

/**
 * `operator`: a person or a program with an operator token, who may do everything. `agent`: an agent with its own key claims and creates
 * tasks for its role and reads its own tasks. `run`: a runner with the token of one lease writes for its one task while the lease is in
 * force. `seed`: a client of the Clawdie protocol with the shared secret, on loopback (and `--compat-from`) only, uses the protocol's five
 * routes without operator rights.
 */
export type Caller =
  | { readonly kind: 'operator'; readonly id: string; readonly name: string }
  | {
      readonly kind: 'agent'
      readonly id: string
      readonly role: string
      /** The key that it came with: a waiting request checks again whether the key is in force. */
      readonly keyId?: string
    }
  | {
      readonly kind: 'run'
      readonly id: string
      readonly role: string
      readonly taskId: string
      readonly runId: string
      readonly attempt: number
      /** It ended by itself, and may only ask again for an answer that it lost. */
      readonly hasEnded?: true
    }
  | { readonly kind: 'seed'; readonly id: 'shared-secret' }

/** Names the caller in records: `operator anna`, `operator` where the name adds nothing, `agent sysadmin`, `run RUN-7 of sysadmin`, `shared secret`. */
export function signatureOf(caller: Caller): string {
  if (caller.kind === 'operator') return caller.name === 'operator' ? caller.name : `operator ${caller.name}`
  if (caller.kind === 'agent') return `agent ${caller.id}`
  if (caller.kind === 'run') return `run ${caller.runId} of ${caller.id}`
  return 'shared secret'
}

export type RunCaller = Of<'run'>

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

/** Accepts an operator, the agent itself or one of its runs. @throws PlaneRefusal forbidden */
export function assertSelf(caller: Caller, agentId: string, what: string): void {
  if (caller.kind === 'operator' || (caller.kind !== 'seed' && caller.id === agentId)) return
  throw new PlaneRefusal('forbidden', `only agent ${agentId} itself or an operator may ${what}; this is ${signatureOf(caller)}`)
}
