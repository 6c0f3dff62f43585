/** Gives a library caller what the command line has: a silent context, and failures as values. */

import type { Ending } from '../../runtime/event.ts'
import type { HostContext, Setup } from '../api.ts'
import { type FailureCode, FailureError } from '../failure.ts'
import { createHostContext } from '../setup/context.ts'
import { loadSetup } from '../setup/setup.ts'

/** The locations; default: as on the command line. */
export type HostOptions = {
  /** Default: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home?: string
  /** The folder in which the tools work; default: the configured one. */
  readonly workspace?: string
  /** Replaces the environment of the process; API keys are looked up here. */
  readonly env?: Readonly<Partial<Record<string, string>>>
  /** Receives log lines, redacted; default: no log. */
  readonly log?: (line: string) => void
}

export const unended: Ending = { stop: 'error', code: 'error', message: 'the run ended without an ending' }

/** A library needs the channels too, because the config file may have their sections. */
type SetupRequest = HostOptions & Pick<HostContext, 'channels'>

export function setUpFor({ workspace, ...around }: SetupRequest, flags: { readonly model?: string; readonly agent?: string }): Setup {
  return loadSetup(silentContext(around), { workspace, ...flags })
}

/** Writes nothing to the streams of the program, because they are not ours. */
export function silentContext({ home, env = process.env, log = nobodyHears, channels }: Omit<SetupRequest, 'workspace'>): HostContext {
  return createHostContext({ env: { ...env, ...(home ? { BRAIDCLAW_HOME: home } : {}) }, channels, say: log })
}

const nobodyHears = () => {}

export type Failure = { readonly code: FailureCode; readonly message: string }

/** Returns as a value what would end a command with an error sentence. */
export async function asValue<T>(step: () => Promise<T>, failed: (failure: Failure) => T): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (error instanceof FailureError) return failed({ code: error.code, message: error.message })
    throw error
  }
}
