/** Defines the paths of all files and folders under the home folder, and chooses the workspace when the user has named none. */

import { join } from 'node:path'
import { realOf } from '../kit/proc.ts'
import type { Origin } from './config.ts'

export type HomePaths = {
  readonly home: string
  readonly config: string
  readonly memory: string
  readonly receipts: string
  readonly receiptsHead: string
  readonly receiptKey: string
  readonly estop: string
  readonly trustedFolders: string
  /** The API keys that onboard keeps; see keys-file.ts. */
  readonly keys: string
  /** The file with facts about models; see text/facts-file.ts. */
  readonly models: string
  readonly logs: string
  readonly agents: string
  /** Only the first existing file is read. */
  readonly agentsFiles: readonly string[]
  /** In the order they are read; later files override earlier ones. */
  readonly envFiles: readonly string[]
}

/** `memory` and `receipts` are defaults; the configuration may move these two. */
export function homePaths(home: string): HomePaths {
  return {
    home,
    config: join(home, 'config.toml'),
    memory: join(home, 'memory.sqlite'),
    receipts: join(home, 'tool_receipts.log'),
    receiptsHead: join(home, 'receipts.head'),
    receiptKey: join(home, 'receipt.key'),
    estop: join(home, 'ESTOP'),
    trustedFolders: join(home, 'trusted_folders'),
    keys: join(home, 'keys.env'),
    models: join(home, 'models.toml'),
    logs: join(home, 'logs'),
    agents: join(home, 'agents'),
    agentsFiles: [join(home, 'agents.json'), join(home, 'config', 'agents.json')],
    envFiles: [join(home, 'config', 'shellclaw.env'), join(home, 'config', 'braidclaw.env')],
  }
}

/** Used by background programs, and instead of a folder that contains too much. */
export const ownWorkspace = 'braidclaw-workspace'

type StartFolder = {
  readonly cwd: string
  /** `~/.braidclaw`. */
  readonly home: string
  readonly userHome: string
  /** True for a background program, because its start folder does not show what it is for. */
  readonly stays?: boolean
}

export function unnamedWorkspace(at: StartFolder): { readonly value: string; readonly origin: Origin } {
  if (at.stays || isTooBroad(at)) return { value: `${at.userHome === '/' ? '' : at.userHome}/${ownWorkspace}`, origin: builtIn }
  return { value: at.cwd, origin: { source: 'default', where: 'current folder' } }
}

/** A folder with this origin is created on first use. */
export const builtIn: Origin = { source: 'default', where: 'built in' }

/**
 * Recognises the root, the user's home folder or a parent of it, and our own records: a user there does not intend the tools to read and
 * change everything in it, keys and mail included.
 */
export function isTooBroad({ cwd, home, userHome }: StartFolder): boolean {
  const [here, own, ours] = [realOf(cwd), realOf(userHome), realOf(home)]
  return here === '/' || `${own}/`.startsWith(`${here}/`) || `${here}/`.startsWith(`${ours}/`)
}
