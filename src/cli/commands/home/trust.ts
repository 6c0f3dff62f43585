/** `trust`: whose project configuration counts. */

import { resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { homePaths } from '../../../config/paths.ts'
import { createTrust } from '../../../config/trust.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { TrustFlags } from '../../routes/types.ts'

export function trust(this: CliContext, { remove = false, list = false, json = false }: TrustFlags, folder?: string): void {
  const book = createTrust(homePaths(this.home).trustedFolders)
  if (list) {
    print(this, book.list(), json)
    return
  }
  const changed = remove ? book.remove(resolve(this.cwd, folder ?? '.')) : book.add(resolve(this.cwd, folder ?? '.'))
  if (!changed.ok) throw new CliExit(exitCodes.error, `error: ${changed.why}`)
  const verb = remove ? (changed.changed ? 'no longer trusted' : 'was not trusted') : changed.changed ? 'trusted' : 'was trusted already'
  this.process.stdout.write(json ? `${JSON.stringify(changed)}\n` : `${changed.folder}: ${verb}\n`)
}

function print(context: CliContext, { folders, notices }: { folders: readonly string[]; notices: readonly string[] }, json: boolean): void {
  context.process.stdout.write(json ? `${JSON.stringify(folders)}\n` : folders.map((folder) => `${folder}\n`).join(''))
  for (const notice of notices) context.process.stderr.write(`note: ${notice}\n`)
}
