/** Finds who a credential belongs to: an operator, an agent, a run, the shared secret, or the session of a browser. */

import type { Credential } from '../../../http/callers/credentials.ts'
import { openSession } from '../../../http/callers/session-cookie.ts'
import type { Connection } from '../../../http/listen.ts'
import type { Caller } from '../../contract/caller.ts'
import type { AccessPlane } from '../../contract/plane.ts'
import { httpErrorOf } from '../refusal-status.ts'
import type { SeedAccess } from './seed-access.ts'

export type FindCallerOptions = {
  readonly access: Pick<AccessPlane, 'callerOf' | 'operator'>
  readonly seed: SeedAccess
  readonly now: () => number
}

/** @throws HttpError for a secret whose time is over, and while the database does not answer */
type Find = (
  credential: Credential,
  request: Pick<Request, 'headers'>,
  connection: Pick<Connection, 'address'>,
) => Promise<Caller | undefined>

export function createFindCaller({ access, seed, now }: FindCallerOptions): Find {
  async function ofSession(cookie: string): Promise<Caller | undefined> {
    const [id = ''] = cookie.split('.')
    const held = /^[\w-]{1,64}$/.test(id) ? await access.operator(id) : undefined
    return openSession(cookie, () => held?.digest, now()) ? held?.caller : undefined
  }

  return async ({ kind, secret }, { headers }, connection) => {
    try {
      if (kind === 'cookie') return await ofSession(secret)
      return (await access.callerOf(secret)) ?? seed({ secret, address: connection.address, headers })
    } catch (error) {
      throw httpErrorOf(error) ?? error
    }
  }
}

/** Names a caller among all: agents and operators may have equal ids. */
export function callerKey(caller: Caller): string {
  return caller.kind === 'run' ? `run:${caller.runId}` : `${caller.kind}:${caller.id}`
}
