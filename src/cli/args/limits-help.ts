/** The limits of a turn in one paragraph of help, from the table of settings. */

import { defaultOf, workValueOf } from '../../config/layers/defaults.ts'
import { leafOf, type Setting } from '../../config/setting.ts'
import { limits } from '../../config/settings/limits.ts'

/** Those that end a turn, or a call in it. */
const shown = ['max_tool_rounds', 'max_same_results', 'shell_timeout_s', 'shell_timeout_max_s', 'tool_timeout_s', 'max_run_seconds']

/** Such as `max_tool_rounds 100 (5 in a config file that leaves it out), …`. */
export function limitsHelp(): string {
  const rows = limits.filter(({ key }) => shown.includes(leafOf(key)))
  return `Limits, all of them keys of [limits] in config.toml ("braidclaw config show" prints those in force): ${rows.map(limitOf).join(', ')}. A turn that reaches one says which it was.`
}

function limitOf(setting: Setting): string {
  const silent = String(defaultOf(setting) ?? setting.absent)
  const work = workValueOf(setting)
  return `${leafOf(setting.key)} ${work === undefined ? silent : `${work} (in a file that leaves it out: ${silent})`}`
}
