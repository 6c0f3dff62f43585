/** Builds the policy that the gate reads, from the configuration and the paths of our own files. */

import { dirname } from 'node:path'
import { allowedTools, type Config } from '../../config/config.ts'
import type { HomePaths } from '../../config/paths.ts'
import { databaseFiles } from '../../memory/database-file.ts'
import { nextSegment, segmentsOf } from '../../receipts/segments.ts'
import { defaultAllow } from '../../security/command/names.ts'
import { definePolicy, type Policy, type PolicyChannel } from '../../security/policy.ts'
import { expandHosts } from '../../security/targets/host-lists.ts'
import { forbiddenPlace } from '../../security/targets/path.ts'
import { realPlace } from '../../workspace/real-place.ts'
import type { ChannelProfile } from '../access/channel-profile.ts'
import type { Environment } from '../api.ts'
import { realFolder } from './workspace-folder.ts'

/** The folders in which executables are searched; PATH is ignored. */
export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function resolveExecutable(name: string): string | undefined {
  return Bun.which(name, { PATH: fixedPath }) ?? undefined
}

export function policyOf(config: Config, paths: HomePaths, env: Environment, access?: ChannelProfile): Policy {
  const { security, memory, receipts } = config
  const toolsAllow = allowedTools(config)
  const ours = [
    paths.home,
    ...databaseFiles(memory.path),
    receipts.path,
    paths.estop,
    ...(receipts.path.startsWith(`${paths.home}/`) ? [] : besides(receipts.path)),
    // The agent's instructions: a model that could write there could write its own orders.
    ...(memory.agentDir ? [memory.agentDir] : []),
  ]
  const workspace = realFolder(config.workspaceDir)
  const home = env.HOME || '/'
  return definePolicy({
    autonomy: security.autonomy,
    workspace,
    workspaceOnly: security.workspaceOnly,
    forbiddenPaths: withRealPlaces(security.forbiddenPaths, { workspace, home }),
    forbiddenReads: security.forbiddenReads,
    forbiddenCommands: security.forbiddenCommands,
    allowCommands: [...defaultAllow, ...security.allowCommands],
    allowedDomains: expandHosts(security.allowedDomains),
    allowedPorts: security.allowedPorts,
    protectedPaths: [...new Set(ours.flatMap((path) => [path, realFolder(path)]))],
    approveAllMedium: security.approveAllMedium,
    ask: security.ask,
    unlistedCommands: security.unlistedCommands,
    readonlyCommands: security.readonlyCommands,
    egress: security.egress,
    direct: security.direct,
    toolSettings: security.toolSettings,
    home,
    ...(config.copyOf === undefined ? {} : { inCopy: true }),
    ...(toolsAllow ? { toolsAllow } : {}),
    ...(access ? { channel: channelOf(access) } : {}),
  })
}

function channelOf({ channel: name, level, tools, memory }: ChannelProfile): PolicyChannel {
  return { name, memory, ...(level ? { level } : {}), ...(tools ? { tools } : {}) }
}

/** A forbidden path that is a symlink, or is below one, is forbidden under both names. */
function withRealPlaces(entries: readonly string[], around: { readonly workspace: string; readonly home: string }): readonly string[] {
  const places = entries.flatMap((entry) => {
    const place = forbiddenPlace(entry, around)
    const real = realPlace(place)
    return real === place ? [] : [real]
  })
  return [...new Set([...entries, ...places])]
}

/** Naming an extra tool allows it, because `toolsAllow` lists only the built-in tools; the list of a channel lists all of them. */
export function allowingToo(policy: Policy, names: readonly string[]): Policy {
  const { toolsAllow, channel } = policy
  if (channel?.tools) return policy
  return toolsAllow && names.length > 0 ? definePolicy({ ...policy, toolsAllow: [...toolsAllow, ...names] }) : policy
}

/** The files beside a log that the operator moved: its head, its closed segments, and the next segment. */
function besides(log: string): string[] {
  return [`${dirname(log)}/receipts.head`, ...segmentsOf(log), nextSegment(log), `${log}.next`]
}
