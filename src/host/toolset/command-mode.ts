/** Tells the gate how commands run on this machine; the gate asks again before each call. */

import { missingForNetwork } from '../../sandbox/bubblewrap/proxy-network.ts'
import type { SandboxKind } from '../../sandbox/confinement.ts'
import type { CommandMode } from '../../security/autonomy.ts'
import type { Setup } from '../api.ts'
import { sandboxState } from './sandbox-state.ts'

export async function commandMode(setup: Setup, kind: SandboxKind): Promise<CommandMode> {
  const confined = kind !== 'none' && (await sandboxState(setup, kind)).ok
  return { confined, transaction: false, network: confined && kind !== 'landlock' && missingForNetwork().length === 0 }
}
