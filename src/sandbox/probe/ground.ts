/** A fresh piece of land for the probe: canaries in a temporary folder, so that a broken sandbox destroys nothing of worth. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxSettings } from '../confinement.ts'

export type Ground = {
  /** What no attempt may print, and what the files outside hold. */
  readonly token: string
  /** A folder next to the workspace that nothing inside may reach. */
  readonly outside: string
  readonly settings: Pick<
    SandboxSettings,
    'workspace' | 'home' | 'stateHome' | 'protectedPaths' | 'secretPaths' | 'allowedDomains' | 'limits'
  >
  remove(): void
}

/** Small enough that breaking a limit of a broken sandbox costs little: the attempts stop by themselves just above these. */
const limits = { memoryBytes: 256 * 2 ** 20, processes: 48, fileBytes: 8 * 2 ** 20, cpuSeconds: 20 }

/** The sandbox under test is to be made with these settings. */
export function prepareGround(): Ground {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-probe-')))
  const token = `canary-${crypto.randomUUID()}`
  const at = (...names: string[]) => join(root, ...names)
  for (const path of ['workspace/nested/.git/hooks', 'workspace/private', 'outside', 'home/.ssh', 'state'])
    mkdirSync(at(path), { recursive: true })
  for (const path of ['home/.ssh/id_canary', 'state/receipt.key', 'workspace/private/secret.pem']) writeFileSync(at(path), token)
  writeFileSync(at('workspace/nested/.git/config'), '[core]\n')
  return {
    token,
    outside: at('outside'),
    settings: {
      workspace: at('workspace'),
      home: at('home'),
      stateHome: at('state'),
      protectedPaths: [],
      secretPaths: [at('workspace/private/secret.pem')],
      allowedDomains: [],
      limits,
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}
