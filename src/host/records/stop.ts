/** Sets and clears the emergency stop of a home; it needs no configuration, so that a stop works when that is broken. */

import { clearStop, readStop, setStop } from '../../service/stop-file.ts'
import type { Setup } from '../api.ts'
import type { HostRecords, StopState } from '../contract/records-api.ts'

export type StopOptions = { readonly path: string; readonly log: Setup['log']; readonly redact: (text: string) => string }

/** @throws Error with an errno when the stop was not set */
export function stopRecords({ path, log, redact }: StopOptions): HostRecords['stop'] {
  function state(): StopState {
    const reason = readStop(path)
    return { stopped: reason !== undefined, reason }
  }

  return {
    state,
    set(reason) {
      const was = state().stopped
      setStop(path, reason === undefined ? `emergency stop set at ${new Date().toISOString()}` : redact(reason))
      const now = state()
      log('info', 'estop triggered', { reason: now.reason })
      return { ...now, was }
    },
    clear() {
      const was = clearStop(path)
      return { ...state(), was }
    },
  }
}
