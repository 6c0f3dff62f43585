/** Starts the commands of one conversation: on a private view where there are private views, with the user's name in git, and what git sends and fetches outside. */

import { lazy } from '../../kit/lazy.ts'
import type { Ahead, Loopback } from '../../sandbox/confinement.ts'
import type { Policy } from '../../security/policy.ts'
import type { Spawn, SpawnPlan } from '../../tools/process.ts'
import type { Setup } from '../api.ts'
import type { Sweep } from './direct-sweep.ts'

type Spawning = {
  readonly setup: Pick<Setup, 'context' | 'paths'>
  readonly policy: Policy
  readonly conversationId: string
  readonly confinement: {
    readonly spawn: Spawn
    warm(plan: Ahead): void
    mode(): Promise<{ readonly confined: boolean; readonly transaction: boolean }>
    openLoopback(): Promise<Loopback | string>
  }
  readonly sweep: Sweep
}

export type CommandSpawn = {
  readonly spawn: Spawn
  /** Starts the sandbox of a command that will follow. */
  warm(plan: Pick<Ahead, 'readOnly' | 'view'>): Promise<void>
  /**
   * From now on the commands without hosts share one network, so that they reach what a command in the background listens on.
   * @returns why they cannot, as the end of a sentence
   */
  shareNetwork(): Promise<string | undefined>
  close(): void
}

/** Reads the user's git settings when the first command starts. */
export function createCommandSpawn({ setup, policy, conversationId, confinement, sweep }: Spawning): CommandSpawn {
  const git = lazy(async () => {
    const { gitForCommands } = await import('./git-around.ts')
    return gitForCommands({ workspace: policy.workspace, home: policy.home, env: setup.context.env })
  })

  /** The level and the hosts are what a command could use to write its caches. */
  const cachesOf = (network: readonly string[] = []) => ({
    conversation: conversationId,
    terms: JSON.stringify([policy.autonomy, policy.approveAllMedium, network.toSorted()]),
  })

  const state: { opening?: Promise<Loopback | string>; loopback?: Loopback } = {}
  const shared = (network: readonly string[] = []) => (state.loopback?.isOpen() && network.length === 0 ? { loopback: state.loopback } : {})

  const confined: Spawn = async (plan) => {
    const [{ env, readablePaths }, mode] = await Promise.all([git.get(), confinement.mode()])
    const own: SpawnPlan = {
      ...plan,
      env: { ...env, ...plan.env },
      caches: cachesOf(plan.network),
      ...shared(plan.network),
      readablePaths: [...(plan.readablePaths ?? []), ...readablePaths],
      ...(plan.view === undefined && !plan.readOnly && mode.transaction ? { view: 'private' } : {}),
    }
    const writes = mode.confined && !own.readOnly && own.view !== 'private'
    return writes ? sweep(own, confinement.spawn) : confinement.spawn(own)
  }

  return {
    async spawn({ transfer, ...plan }) {
      if (transfer === undefined) return confined(plan)
      const { runTransfer } = await import('./transfer/run-transfer.ts')
      return runTransfer({ plan, transfer, policy, stateHome: setup.paths.home, env: setup.context.env, spawn: confined })
    },
    async warm(plan) {
      confinement.warm({ ...plan, caches: cachesOf(), ...shared(), readablePaths: (await git.get()).readablePaths })
    },
    async shareNetwork() {
      // A network whose holder has ended takes no further commands.
      if (state.loopback?.isOpen() === false) state.opening = undefined
      state.opening ??= confinement.openLoopback()
      const opened = await state.opening
      if (typeof opened === 'string') return opened
      state.loopback = opened
    },
    close: () => state.loopback?.close(),
  }
}
