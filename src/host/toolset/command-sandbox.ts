/** The sandbox for the commands of one agent: made when the first command wants one, taken down with the agent. */

import { availableParallelism } from 'node:os'
import type { Config } from '../../config/config.ts'
import { databaseFiles } from '../../memory/database-file.ts'
import { filesOf } from '../../receipts/segments.ts'
import type { SandboxKind } from '../../sandbox/confinement.ts'
import type { Policy } from '../../security/policy.ts'
import { forbiddenPlace } from '../../security/targets/path.ts'
import { type Spawn, spawnPlain } from '../../tools/process.ts'
import { realPlace } from '../../workspace/real-place.ts'
import type { Setup } from '../api.ts'
import { shellTimesOf } from '../setup/run-limits.ts'
import { forgetSandbox } from './sandbox-state.ts'

export type Confinement = {
  /** Without a working sandbox nothing runs, and the message says what to install. */
  readonly spawn: Spawn
  close(): void
}

/** Of one command; see docs/sandbox.md for which layer enforces what. */
const limits = { memoryBytes: 4 * 1024 ** 3, processes: 512, fileBytes: 4 * 1024 ** 3 } as const

/** Processor time of one process: what it can use on all processors before its time is over, so that this limit never comes first. */
export function cpuSecondsOf(limits: Config['limits'], processors = availableParallelism()): number {
  return Math.ceil(Math.max(600, limits.toolTimeoutS, shellTimesOf(limits).longestS) * processors)
}

/** Said only to those who have not tried it. */
const instead: { readonly [kind: string]: string } = { auto: '; or --sandbox landlock, which protects less (docs/sandbox.md)' }

export function createConfinement(kind: SandboxKind, { setup, policy }: { readonly setup: Setup; readonly policy: Policy }): Confinement {
  const state: { made?: ReturnType<typeof make>; close?: () => void } = {}

  async function make() {
    const [{ createSandbox }, { wayOut }, { hideProcess }] = await Promise.all([
      import('../../sandbox/create-sandbox.ts'),
      import('./sandbox-network.ts'),
      import('../../sandbox/protect/hide.ts'),
    ])
    const { paths, log } = setup
    hideProcess()
    const created = await createSandbox({
      kind,
      workspace: policy.workspace,
      home: policy.home,
      stateHome: paths.home,
      protectedPaths: [],
      forbiddenPaths: () => policy.forbiddenPaths.map((entry) => realPlace(forbiddenPlace(entry, policy))),
      secretPaths: outsideHome(setup),
      ...(await wayOut(kind, policy, setup)),
      limits: { ...limits, cpuSeconds: cpuSecondsOf(setup.config.limits) },
      spawnPlain,
      log,
    })
    if (created.ok) state.close = created.sandbox.close
    else forgetSandbox(setup)
    return created
  }

  return {
    async spawn(plan) {
      state.made ??= make()
      const made = await state.made
      if (made.ok) {
        const { name, spawn } = made.sandbox
        const ended = await spawn(plan)
        return ended.ok ? { ...ended, sandbox: name } : ended
      }
      return {
        ok: false,
        message: `no sandbox, so no command runs: ${made.missing}${instead[kind] ?? ''}; or, with all your rights and at your own risk: --sandbox none`,
      }
    },
    close: () => state.close?.(),
  }
}

/** Our own files that the operator put elsewhere; a name that is not there yet is not covered. */
function outsideHome({ config, paths }: Pick<Setup, 'config' | 'paths'>): string[] {
  const { memory, receipts } = config
  return [...databaseFiles(memory.path), ...filesOf(receipts.path)].filter((path) => !path.startsWith(`${paths.home}/`))
}
