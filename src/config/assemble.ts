/** Turns checked entries into the typed Config; only this file maps TOML keys such as `max_tool_rounds` to `maxToolRounds`. */

import { type Rows, withDefaults } from '../kit/settings.ts'
import type { AgentConfig, Config } from './config.ts'
import { type Entries, providerNames } from './layers/entries.ts'
import { kindOf } from './layers/references.ts'
import { type ChannelRows, providerPrefix, rowsOfKind, sections } from './table.ts'
import { topRows } from './top-settings.ts'

export type Assembling = {
  /** Every entry has passed its checks, so its value has the type of its row. */
  readonly entries: Entries
  readonly agents: { readonly [id: string]: AgentConfig }
  readonly channels: readonly ChannelRows[]
}

export function assemble({ entries, agents, channels }: Assembling): Config {
  const values = (prefix: string, rows: Rows = {}) => withDefaults(rows, (key) => entries.get(prefix + key)?.value)
  const provider = (name: string) => {
    const kind = kindOf(entries, name)
    return [name, { kind, name, ...values(`${providerPrefix}${name}.`, rowsOfKind(kind)) }]
  }
  return {
    ...values('', topRows),
    ...Object.fromEntries(Object.entries(sections).map(([name, rows]) => [name, values(`${name}.`, rows)])),
    agents,
    providers: { models: Object.fromEntries(providerNames(entries).map(provider)) },
    channels: Object.fromEntries(channels.map(({ name, settings }) => [name, values(`channels.${name}.`, settings)])),
  } as Config
}
