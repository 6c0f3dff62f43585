/** What a command needs before it can do anything: the configuration, the redactor, the log. Bad configuration ends the command here. */

import { describeProblem } from '../../config/config.ts'
import type { Flags } from '../../config/layers/flags.ts'
import { type Loaded, loadConfig } from '../../config/load.ts'
import { homePaths } from '../../config/paths.ts'
import { createTrust } from '../../config/trust.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { CliContext, Setup } from '../world.ts'
import { equip } from './equip.ts'

/** `stays`: see LoadInput. */
type How = { readonly stays?: boolean }

/** @throws CliExit naming every problem of the configuration at once: 1, or 2 when only flags are wrong. */
export function setUp(context: CliContext, flags: Flags = {}, how: How = {}): Setup {
  const { origins, ...found } = resolve(context, flags, how)
  return equip(context, { ...found, origins: () => origins })
}

/** @throws CliExit naming every problem of the configuration at once: 1, or 2 when only flags are wrong. */
export function resolve({ home, env, cwd }: CliContext, flags: Flags, { stays = false }: How = {}): Extract<Loaded, { ok: true }> {
  const trusted = (folder: string) => createTrust(homePaths(home).trustedFolders).isTrusted(folder)
  const loaded = loadConfig({ home, env, cwd, flags, trusted, stays })
  if (loaded.ok) return loaded
  const code = loaded.problems.every(({ file }) => file.startsWith('--')) ? exitCodes.usage : exitCodes.error
  throw new CliExit(code, loaded.problems.map((problem) => `error: ${describeProblem(problem)}`).join('\n'))
}
