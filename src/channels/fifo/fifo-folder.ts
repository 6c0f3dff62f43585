/** Which folder the six FIFOs are in, and that they are there. */

import { resolve } from 'node:path'
import { FailureError } from '../../host/failure.ts'
import { createFifos } from '../../service/fifo/create-fifos.ts'
import type { CliContext } from '../terminal/context.ts'

export const usualFolder = '/tmp/planckclaw'

/** Absolute. */
export function fifoFolder({ cwd, env }: CliContext, named: string | undefined): string {
  return resolve(cwd, named ?? (env.PLANCKCLAW_FIFOS || usualFolder))
}

/** @throws FailureError error when they cannot be ours */
export async function makeFifos(dir: string): Promise<void> {
  const created = await createFifos(dir)
  if (!created.ok) throw new FailureError('error', `${created.message}`)
}
