/** Removes the six FIFOs when no process needs them any more. */

import { lstatSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { FIFOS } from '../../kit/wire.ts'

/** Removes our own FIFOs, then the folder if it is empty. A bridge that has a FIFO open keeps it, and receives nothing from then on. */
export function removeFifos(dir: string): void {
  for (const name of FIFOS) {
    const path = join(dir, name)
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isFIFO() && found.uid === process.geteuid?.()) rmSync(path, { force: true })
  }
  try {
    rmdirSync(dir)
  } catch {
    // The folder contains other files.
  }
}
