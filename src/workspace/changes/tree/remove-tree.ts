/** Removes a folder with everything in it, also below folders whose modes forbid it, without blocking the process. */

import { chmodSync, lstatSync, promises, readdirSync } from 'node:fs'
import { codeOf } from '../../descriptor.ts'

/** Does nothing when it is gone. @throws the system's error */
export async function removeTree(path: string): Promise<void> {
  try {
    await promises.rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(codeOf(error))) throw error
    openUp(Buffer.from(path))
    await promises.rm(path, { recursive: true, force: true })
  }
}

function openUp(folder: Buffer): void {
  if (!lstatSync(folder).isDirectory()) return
  chmodSync(folder, 0o700)
  // With file types, the runtime gives names instead of entries for a path of bytes.
  for (const name of readdirSync(folder, { encoding: 'buffer' })) openUp(Buffer.concat([folder, Buffer.from('/'), name]))
}
