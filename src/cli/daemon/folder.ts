/** Which folder the six FIFOs are in, and that they are there. */

import { resolve } from 'node:path'
import { createFifos } from '../../service/fifo/create.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { CliContext } from '../world.ts'

export const usualFolder = '/tmp/planckclaw'

/** Absolute. */
export function fifoFolder({ cwd, env }: CliContext, named: string | undefined): string {
  return resolve(cwd, named ?? (env.PLANCKCLAW_FIFOS || usualFolder))
}

/** @throws CliExit 1 when they cannot be ours */
export async function makeFifos(dir: string): Promise<void> {
  const created = await createFifos(dir)
  if (!created.ok) throw new CliExit(exitCodes.error, `error: ${created.message}`)
}
