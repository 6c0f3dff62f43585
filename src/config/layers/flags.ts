/** Reads the command line as a layer. */

import { settingOf } from '../table.ts'
import { draftLayer, type Here, type Layer, put } from './entries.ts'

/** The settings that the command line may override. A relative path starts at the current folder. `model` may be `provider/model`. */
export type Flags = {
  readonly workspace?: string
  readonly provider?: string
  readonly model?: string
  readonly agent?: string
  readonly autonomy?: string
  readonly maxTurns?: number
  readonly approveAllMedium?: boolean
  readonly toolsAllow?: readonly string[]
  readonly logLevel?: string
}

const flagKeys: { readonly [flag in keyof Required<Flags>]: readonly [key: string, spelling: string] } = {
  workspace: ['workspace_dir', '--workspace'],
  provider: ['default_provider', '--provider'],
  model: ['default_model', '--model'],
  agent: ['default_agent', '--agent'],
  autonomy: ['security.autonomy', '--autonomy'],
  maxTurns: ['limits.max_tool_rounds', '--max-turns'],
  approveAllMedium: ['security.approve_all_medium', '--approve-all-medium'],
  toolsAllow: ['channels.cli.tools_allow', '--tools'],
  logLevel: ['log.level', '--log-level'],
}

export function flagLayer(flags: Flags, where: Here): Layer {
  const draft = draftLayer()
  const given = new Map<string, unknown>(Object.entries(flags))
  if (given.size === 0) return draft
  for (const [flag, [key, spelling]] of Object.entries(flagKeys)) {
    const setting = settingOf(where.table, key)
    const raw = given.get(flag)
    if (raw !== undefined && setting !== undefined) put(draft, { setting, raw, where, origin: { source: 'flag', where: spelling } })
  }
  return draft
}
