/** Implements `config show | validate | schema`. */

import { resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { describeProblem } from '../../../config/config.ts'
import { configSchema } from '../../../config/output/json-schema.ts'
import { programIn, showConfig, showVariables } from '../../../config/output/show.ts'
import { homePaths } from '../../../config/paths.ts'
import { createTrust } from '../../../config/trust.ts'
import { validateConfig } from '../../../config/validate.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { builtInNames } from '../../../host/toolset/tool-selection.ts'
import { count } from '../../../kit/text.ts'
import { openLibc } from '../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../workspace/changes/turns.ts'
import { type Arguments, command, type Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'

/** Implements `trust`: it lists and changes the folders whose project configuration counts. */
const flags = {
  remove: { type: 'boolean', about: 'No longer trust the folder' },
  list: { type: 'boolean', about: 'List the trusted folders' },
  ...jsonFlag,
} as const satisfies Flags
const args = { dir: { type: 'text', optional: true, about: 'Folder (default: this one)' } } as const satisfies Arguments

export const trust = command({
  flags: flags,
  args: args,
  examples: [
    ['', 'trust this folder'],
    ['--remove ~/project', 'no longer'],
    ['--list', 'whom you trust'],
  ],
  async run(context, { remove = false, list = false, json = false }, { dir: folder }) {
    const book = createTrust(homePaths(context.home).trustedFolders)
    if (list) {
      print(context, book.list(), json)
      return
    }
    const place = resolve(context.cwd, folder ?? '.')
    // Two processes that write the list at once would undo each other's change.
    const changed = await createTurns(context.home, openLibc).take(async () => (remove ? book.remove(place) : book.add(place)))
    if (!changed.ok) throw commandError(`${changed.why}`)
    const verb = remove ? (changed.changed ? 'no longer trusted' : 'was not trusted') : changed.changed ? 'trusted' : 'was trusted already'
    context.process.stdout.write(json ? `${JSON.stringify(changed)}\n` : `${changed.folder}: ${verb}\n`)
  },
})

function print(context: CliContext, { folders, notices }: { folders: readonly string[]; notices: readonly string[] }, json: boolean): void {
  context.process.stdout.write(json ? `${JSON.stringify(folders)}\n` : folders.map((folder) => `${folder}\n`).join(''))
  for (const notice of notices) context.process.stderr.write(`note: ${notice}\n`)
}

export const show = command({
  flags: {
    origin: { type: 'boolean', about: 'Say where each value comes from' },
    env: { type: 'boolean', about: 'Print NAME=value lines that a shell can read: eval "$(braidclaw config --env)"' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  examples: [
    ['--origin', 'and which file, variable or flag said so'],
    ['--json', 'for scripts'],
    ['--env', 'NAME=value lines for a shell'],
  ],
  run(context, { origin = false, env = false, json = false, workspace }) {
    if (env && (origin || json)) throw usageError('--env prints a format of its own; leave --origin and --json out')
    const { config, origins, redactor, paths } = loadSetup(context, { workspace })
    const { channels } = context
    if (env) return void context.process.stdout.data(showVariables(config, { home: paths.home, channels, redact: redactor.text }))
    context.process.stdout.write(redactor.text(showConfig(config, origins, { origin, json, channels })))
  },
})

export const validate = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [['', 'exit 0 when there is none']],
  run(context, { json = false, workspace }) {
    const { home, env, cwd, channels } = context
    const { config, trustedFolders } = homePaths(home)
    const trusted = (folder: string) => createTrust(trustedFolders).isTrusted(folder)
    const loaded = validateConfig({ home, env, cwd, channels, flags: { workspace }, trusted, tools: builtInNames })
    const { warnings } = loaded
    if (json)
      context.process.stdout.write(
        `${context.redactor.text(JSON.stringify(loaded.ok ? { ok: true, file: loaded.file ?? null, warnings } : loaded))}\n`,
      )
    else
      for (const warning of [...warnings.map(describeProblem), ...(loaded.ok ? loaded.notices : [])])
        context.process.stderr.write(`warning: ${warning}\n`)
    if (!loaded.ok) {
      const lines = loaded.problems.map((problem) => `error: ${describeProblem(problem)}`)
      throw new CliExit(exitCodes.error, json ? '' : [...lines, `${count(lines.length, 'problem')} found`].join('\n'))
    }
    const program = programIn(loaded.origins)
    if (!json && program) context.process.stdout.write(`${program} is valid\n`)
    if (!json) context.process.stdout.write(loaded.file ? `${loaded.file} is valid\n` : `valid: no ${config} yet, the defaults hold\n`)
  },
})

export const schema = command({
  examples: [['> config.schema.json', 'for an editor']],
  run(context) {
    context.process.stdout.write(`${JSON.stringify(configSchema(context.channels), null, 2)}\n`)
  },
})
