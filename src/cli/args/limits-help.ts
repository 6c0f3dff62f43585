/** Describes the limits of a turn in one paragraph of help, from the table of settings. */

import { defaultOf, type Row } from '../../kit/settings.ts'
import { limitRows } from '../../runtime/settings.ts'

/** The limits that end a turn, or a call in it. */
const shown = ['max_tool_rounds', 'max_same_results', 'shell_timeout_s', 'shell_timeout_max_s', 'tool_timeout_s', 'max_run_seconds']

/** Formats, for example, `max_tool_rounds 100, shell_timeout_s 120, …`. */
export function limitsHelp(): string {
  const rows = Object.entries(limitRows).filter(([key]) => shown.includes(key))
  return `Limits, all of them keys of [limits] in config.toml ("braidclaw config show" prints those in force): ${rows.map(limitOf).join(', ')}. A turn that reaches one says which it was.`
}

function limitOf([key, row]: readonly [key: string, row: Row]): string {
  return `${key} ${defaultOf(row) ?? row.absent}`
}
