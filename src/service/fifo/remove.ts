/** Takes away the six FIFOs when nobody needs them any more. */

import { lstatSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { FIFOS } from '../../kit/wire.ts'

/** Removes what is a FIFO of ours, then the folder if nothing else is in it. A bridge that has one open keeps it, and hears nobody. */
export function removeFifos(dir: string): void {
  for (const name of FIFOS) {
    const path = join(dir, name)
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isFIFO() && found.uid === process.geteuid?.()) rmSync(path, { force: true })
  }
  try {
    rmdirSync(dir)
  } catch {
    // Somebody keeps something else there.
  }
}
