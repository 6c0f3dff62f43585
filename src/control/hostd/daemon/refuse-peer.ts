/** Refuses a peer whose user may not connect, with a line that says so and a receipt. */

import type { Log } from '../../../runtime/port.ts'
import type { Catalogue } from '../catalogue/operation.ts'
import type { HostdError } from '../hostd-wire.ts'
import { deniedRecord, type RecordCall } from '../operation/receipt-record.ts'
import type { Rate } from '../operation/request-rate.ts'
import { mayConnect, type Peer } from '../peer.ts'

export type RefusalOptions = {
  readonly catalogue: Catalogue
  readonly own: number
  readonly record: RecordCall
  readonly rateOf: (uid: number) => Rate
  readonly log: Log
}

/** @returns the line for a peer that may not connect; undefined for one that may */
export function createRefusals({ catalogue, own, record, rateOf, log }: RefusalOptions): (peer: Peer | undefined) => string | undefined {
  return (peer) => {
    if (peer && mayConnect(peer, catalogue.server, own)) return undefined
    const error: HostdError = {
      code: 'forbidden',
      message: `user ${peer?.uid ?? 'unknown'} may not use this hostd; see uids and gids in the catalogue`,
    }
    if (rateOf(peer?.uid ?? -1) === 'within') {
      log('warn', 'connection refused', { uid: peer?.uid, pid: peer?.pid })
      note(record, { peer, error, log })
    }
    return refusalLine(error)
  }
}

type Refused = Pick<RefusalOptions, 'log'> & { readonly peer: Peer | undefined; readonly error: HostdError }

function note(record: RecordCall, { peer, error, log }: Refused): void {
  const asked = { op: 'connect', ...(peer ? { peer: { uid: peer.uid, gid: peer.gid, pid: peer.pid } } : {}) }
  try {
    record(deniedRecord(asked, 'low', error))
  } catch (failure) {
    log('warn', 'no receipt could be written', { why: String(failure) })
  }
}

/** A line for a connection of which no request was read. */
export function refusalLine(error: HostdError): string {
  return JSON.stringify({ id: '', ok: false, output: '', exitCode: null, error })
}
