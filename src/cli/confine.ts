/** The sandbox for the commands of one agent: made when the first command wants one, taken down with the agent. */

import type { SandboxKind } from '../sandbox/port.ts'
import type { Policy } from '../security/policy.ts'
import { type Spawn, spawnPlain } from '../tools/process.ts'
import type { Setup } from './world.ts'

export type Confinement = {
  /** Without a working sandbox nothing runs, and the message says what to install. */
  readonly spawn: Spawn
  close(): void
}

/** Of one command; see docs/sandbox.md for which layer enforces what. */
const limits = { memoryBytes: 4 * 1024 ** 3, processes: 512, fileBytes: 4 * 1024 ** 3, cpuSeconds: 600 } as const

export function createConfinement(kind: SandboxKind, { setup, policy }: { readonly setup: Setup; readonly policy: Policy }): Confinement {
  const state: { made?: ReturnType<typeof make>; close?: () => void } = {}

  async function make() {
    const { createSandbox } = await import('../sandbox/create.ts')
    const { paths, config, log } = setup
    const created = await createSandbox({
      kind,
      workspace: policy.workspace,
      home: policy.home,
      stateHome: paths.home,
      protectedPaths: [],
      secretPaths: [config.memory.path, config.receipts.path].filter((path) => !path.startsWith(`${paths.home}/`)),
      allowedDomains: [],
      limits,
      spawnPlain,
      log,
    })
    if (created.ok) state.close = created.sandbox.close
    return created
  }

  return {
    async spawn(plan) {
      state.made ??= make()
      const made = await state.made
      if (made.ok) return made.sandbox.spawn(plan)
      return {
        ok: false,
        message: `no sandbox, so no command runs: ${made.missing}; or, with all your rights and at your own risk: --sandbox none`,
      }
    },
    close: () => state.close?.(),
  }
}
