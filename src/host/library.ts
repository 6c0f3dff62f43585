/** What a program that calls us as a library needs in place of a command line: a silent context, and failures as values. */

import type { Ending } from '../runtime/event.ts'
import type { HostContext, Setup } from './api.ts'
import { type FailureCode, FailureError } from './failure.ts'
import { createHostContext } from './setup/context.ts'
import { loadSetup } from './setup/setup.ts'

/** Where everything is found; absent: as on the command line. */
export type HostOptions = {
  /** Default: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home?: string
  /** Where the tools work; default: the configured one. */
  readonly workspace?: string
  /** Instead of the process's own; API keys are looked up here. */
  readonly env?: Readonly<Partial<Record<string, string>>>
  /** Log lines, redacted; default: none. */
  readonly log?: (line: string) => void
}

export const unended: Ending = { stop: 'error', code: 'error', message: 'the run ended without an ending' }

/** A library knows the channels too: their sections may stand in the file. */
type SetupRequest = HostOptions & Pick<HostContext, 'channels'>

export function setUpFor({ workspace, ...around }: SetupRequest, flags: { readonly model?: string; readonly agent?: string }): Setup {
  return loadSetup(silentContext(around), { workspace, ...flags })
}

/** Nothing of ours goes to the streams of a program that is not ours. */
export function silentContext({ home, env = process.env, log = nobodyHears, channels }: Omit<SetupRequest, 'workspace'>): HostContext {
  return createHostContext({ env: { ...env, ...(home ? { BRAIDCLAW_HOME: home } : {}) }, channels, say: log })
}

const nobodyHears = () => {}

export type Failure = { readonly code: FailureCode; readonly message: string }

/** What would end a command with a sentence is a value here. */
export async function asValue<T>(step: () => Promise<T>, failed: (failure: Failure) => T): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (error instanceof FailureError) return failed({ code: error.code, message: error.message })
    throw error
  }
}
