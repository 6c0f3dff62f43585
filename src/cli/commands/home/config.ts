/** `config show | validate | schema`. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { describeProblem } from '../../../config/config.ts'
import { configSchema } from '../../../config/output/json-schema.ts'
import { showConfig } from '../../../config/output/show.ts'
import { homePaths } from '../../../config/paths.ts'
import { createTrust } from '../../../config/trust.ts'
import { validateConfig } from '../../../config/validate.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import type { Json, Workspace } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { ConfigShowFlags } from '../../routes/types.ts'

export function show(this: CliContext, { origin = false, json = false, workspace }: ConfigShowFlags): void {
  const { config, origins, redactor } = setUp(this, { workspace })
  this.process.stdout.write(redactor.text(showConfig(config, origins(), { origin, json, channels: this.channels })))
}

export function validate(this: CliContext, { json = false, workspace }: Workspace & Json): void {
  const { home, env, cwd, channels } = this
  const { config, trustedFolders } = homePaths(home)
  const trusted = (folder: string) => createTrust(trustedFolders).isTrusted(folder)
  const loaded = validateConfig({ home, env, cwd, channels, flags: { workspace }, trusted })
  if (json)
    this.process.stdout.write(`${this.redactor.text(JSON.stringify(loaded.ok ? { ok: true, file: loaded.file ?? null } : loaded))}\n`)
  if (!loaded.ok) {
    const lines = loaded.problems.map((problem) => `error: ${describeProblem(problem)}`)
    throw new CliExit(exitCodes.error, json ? '' : [...lines, `${count(lines.length, 'problem')} found`].join('\n'))
  }
  if (!json) this.process.stdout.write(loaded.file ? `${loaded.file} is valid\n` : `valid: no ${config} yet, the defaults hold\n`)
}

export function schema(this: CliContext): void {
  this.process.stdout.write(`${JSON.stringify(configSchema(this.channels), null, 2)}\n`)
}
