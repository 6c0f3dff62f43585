/** Gathers what a sandbox is created with; loaded when the first command needs one. */

import { totalmem } from 'node:os'
import type { Limits, SandboxKind, SandboxSettings } from '../../../sandbox/contract.ts'
import { hideProcess } from '../../../sandbox/protect/hide.ts'
import type { Policy } from '../../../security/policy.ts'
import { forbiddenPlace } from '../../../security/targets/path.ts'
import { spawnPlain } from '../../../tools/process.ts'
import { realPlace } from '../../../workspace/real-place.ts'
import type { Setup } from '../../api.ts'
import { gitUser } from '../../transactions/git-around.ts'
import { sandboxNetwork } from '../network.ts'

/** The limits of one command; see docs/sandbox.md for which layer enforces what. */
const GIB = 1024 ** 3
const limits = { memoryBytes: 4 * GIB, processes: 512, fileBytes: 4 * GIB, diskBytes: 16 * GIB } as const

/** Half of the machine's memory, but 4 GiB where three quarters of the machine are as much. */
export function totalMemoryBytes(machine = totalmem()): number {
  return Math.floor(Math.max(machine / 2, Math.min(limits.memoryBytes, machine * 0.75)))
}

type SandboxRequest = {
  readonly kind: SandboxKind
  readonly setup: Setup
  readonly policy: Policy
  readonly hosts: readonly string[]
  readonly own: Pick<SandboxSettings, 'secretPaths' | 'tried'> & Partial<Limits> & { readonly cpuSeconds: number }
}

export async function settingsFor({ kind, setup, policy, hosts, own }: SandboxRequest): Promise<SandboxSettings> {
  const { secretPaths, tried, ...ownLimits } = own
  hideProcess()
  return {
    secretPaths,
    tried,
    kind,
    workspace: policy.workspace,
    home: policy.home,
    stateHome: setup.paths.home,
    protectedPaths: [],
    forbiddenPaths: () => policy.forbiddenPaths.map((entry) => realPlace(forbiddenPlace(entry, policy))),
    forbiddenReads: policy.forbiddenReads,
    userPath: setup.context.env.PATH,
    gitUser: gitUser({ workspace: policy.workspace, home: policy.home, env: setup.context.env }),
    forbiddenCommands: policy.forbiddenCommands,
    ...(await sandboxNetwork(kind, { policy, hosts }, setup)),
    limits: { ...limits, totalMemoryBytes: totalMemoryBytes(), ...ownLimits },
    spawnPlain,
    log: setup.log,
  }
}
