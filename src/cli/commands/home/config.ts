/** Implements `config show | validate | schema`. */

import { describeProblem } from '../../../config/config.ts'
import { configSchema } from '../../../config/output/json-schema.ts'
import { showConfig } from '../../../config/output/show.ts'
import { homePaths } from '../../../config/paths.ts'
import { createTrust } from '../../../config/trust.ts'
import { validateConfig } from '../../../config/validate.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { builtInNames } from '../../../host/toolset/tool-selection.ts'
import { count } from '../../../kit/count.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'

const showFlags = {
  origin: { type: 'boolean', about: 'Say where each value comes from' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags
const validateFlags = { ...workspaceFlag, ...jsonFlag } as const satisfies Flags

export const show = {
  flags: showFlags,
  examples: [
    ['--origin', 'and which file, variable or flag said so'],
    ['--json', 'for scripts'],
  ],
  run(context, { origin = false, json = false, workspace }) {
    const { config, origins, redactor } = loadSetup(context, { workspace })
    context.process.stdout.write(redactor.text(showConfig(config, origins, { origin, json, channels: context.channels })))
  },
} as const satisfies Command<typeof showFlags>

export const validate = {
  flags: validateFlags,
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
    else for (const warning of warnings) context.process.stderr.write(`warning: ${describeProblem(warning)}\n`)
    if (!loaded.ok) {
      const lines = loaded.problems.map((problem) => `error: ${describeProblem(problem)}`)
      throw new CliExit(exitCodes.error, json ? '' : [...lines, `${count(lines.length, 'problem')} found`].join('\n'))
    }
    if (!json) context.process.stdout.write(loaded.file ? `${loaded.file} is valid\n` : `valid: no ${config} yet, the defaults hold\n`)
  },
} as const satisfies Command<typeof validateFlags>

export const schema = {
  examples: [['> config.schema.json', 'for an editor']],
  run(context) {
    context.process.stdout.write(`${JSON.stringify(configSchema(context.channels), null, 2)}\n`)
  },
} as const satisfies Command
