/** Which folder the six FIFOs are in. */

import { resolve } from 'node:path'
import type { CliContext } from '../world.ts'

export const usualFolder = '/tmp/planckclaw'

/** Absolute. */
export function fifoFolder({ cwd, env }: CliContext, named: string | undefined): string {
  return resolve(cwd, named ?? (env.PLANCKCLAW_FIFOS || usualFolder))
}
