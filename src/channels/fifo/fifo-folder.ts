/** Determines the folder of the six FIFOs, and creates them. */

import { resolve } from 'node:path'
import { FailureError } from '../../host/failure.ts'
import { createFifos } from '../../service/fifo/create-fifos.ts'
import type { CliContext } from '../terminal/context.ts'

export const usualFolder = '/tmp/planckclaw'

/** Returns an absolute path. */
export function fifoFolder({ cwd, env }: CliContext, named: string | undefined): string {
  return resolve(cwd, named ?? (env.PLANCKCLAW_FIFOS || usualFolder))
}

/** @throws FailureError `error` when they cannot be created or are not ours */
export async function makeFifos(dir: string): Promise<void> {
  const created = await createFifos(dir)
  if (!created.ok) throw new FailureError('error', `${created.message}`)
}
