/** Implements `trust`: it lists and changes the folders whose project configuration counts. */

import { resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { homePaths } from '../../../config/paths.ts'
import { createTrust } from '../../../config/trust.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/flags.ts'
import { commandError } from '../../exit.ts'

const flags = {
  remove: { type: 'boolean', about: 'No longer trust the folder' },
  list: { type: 'boolean', about: 'List the trusted folders' },
  ...jsonFlag,
} as const satisfies Flags
const args = { dir: { type: 'text', optional: true, about: 'Folder (default: this one)' } } as const satisfies Arguments

export const trust = {
  flags: flags,
  args: args,
  examples: [
    ['', 'trust this folder'],
    ['--remove ~/project', 'no longer'],
    ['--list', 'whom you trust'],
  ],
  run(context, { remove = false, list = false, json = false }, { dir: folder }) {
    const book = createTrust(homePaths(context.home).trustedFolders)
    if (list) {
      print(context, book.list(), json)
      return
    }
    const changed = remove ? book.remove(resolve(context.cwd, folder ?? '.')) : book.add(resolve(context.cwd, folder ?? '.'))
    if (!changed.ok) throw commandError(`${changed.why}`)
    const verb = remove ? (changed.changed ? 'no longer trusted' : 'was not trusted') : changed.changed ? 'trusted' : 'was trusted already'
    context.process.stdout.write(json ? `${JSON.stringify(changed)}\n` : `${changed.folder}: ${verb}\n`)
  },
} as const satisfies Command<typeof flags, typeof args>

function print(context: CliContext, { folders, notices }: { folders: readonly string[]; notices: readonly string[] }, json: boolean): void {
  context.process.stdout.write(json ? `${JSON.stringify(folders)}\n` : folders.map((folder) => `${folder}\n`).join(''))
  for (const notice of notices) context.process.stderr.write(`note: ${notice}\n`)
}
