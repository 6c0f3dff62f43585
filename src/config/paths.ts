/** Defines the paths of all files and folders under the home folder. */

import { join } from 'node:path'

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
  /** What is known of models; see text/facts-file.ts. */
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
