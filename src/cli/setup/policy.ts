/** The operator's policy as the gate reads it, from the configuration and the places we keep. */

import { dirname } from 'node:path'
import type { Config } from '../../config/config.ts'
import type { HomePaths } from '../../config/paths.ts'
import { databaseFiles } from '../../memory/database-file.ts'
import { nextSegment, segmentsOf } from '../../receipts/segments.ts'
import { defaultAllow } from '../../security/command/allow.ts'
import { definePolicy, type Policy } from '../../security/policy.ts'
import type { Environment } from '../world.ts'
import { realFolder } from './workspace.ts'

/** Where executables are looked for, whatever PATH says. */
export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function resolveExecutable(name: string): string | undefined {
  return Bun.which(name, { PATH: fixedPath }) ?? undefined
}

export function policyOf(config: Config, paths: HomePaths, env: Environment): Policy {
  const { security, channels, memory, receipts } = config
  const ours = [
    paths.home,
    ...databaseFiles(memory.path),
    receipts.path,
    paths.estop,
    ...(receipts.path.startsWith(`${paths.home}/`) ? [] : besides(receipts.path)),
    // What an agent is told of itself: a model that could write there would write its own orders.
    ...(memory.agentDir ? [memory.agentDir] : []),
  ]
  return definePolicy({
    autonomy: security.autonomy,
    workspace: realFolder(config.workspaceDir),
    workspaceOnly: security.workspaceOnly,
    forbiddenPaths: security.forbiddenPaths,
    forbiddenCommands: security.forbiddenCommands,
    allowCommands: [...defaultAllow, ...security.allowCommands],
    allowedDomains: security.allowedDomains,
    allowedPorts: security.allowedPorts,
    protectedPaths: [...new Set(ours.flatMap((path) => [path, realFolder(path)]))],
    approveAllMedium: security.approveAllMedium,
    home: env.HOME || '/',
    ...(channels.cli.toolsAllow ? { toolsAllow: channels.cli.toolsAllow } : {}),
  })
}

/** Whoever names a further tool allows it: `toolsAllow` is the list of the built-in ones. */
export function allowingToo(policy: Policy, names: readonly string[]): Policy {
  const { toolsAllow } = policy
  return toolsAllow && names.length > 0 ? definePolicy({ ...policy, toolsAllow: [...toolsAllow, ...names] }) : policy
}

/** What stands beside a log that the operator put elsewhere: its head, its closed segments, and the one to come. */
function besides(log: string): string[] {
  return [`${dirname(log)}/receipts.head`, ...segmentsOf(log), nextSegment(log), `${log}.next`]
}
