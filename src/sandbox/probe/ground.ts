/** Prepares a temporary folder with canary files for the probe, so that a broken sandbox destroys nothing of value. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxSettings } from '../confinement.ts'

export type Ground = {
  /** The content of the secret files; no attempt may print it. */
  readonly token: string
  /** A folder next to the workspace that no command may reach. */
  readonly outside: string
  readonly settings: Pick<
    SandboxSettings,
    | 'workspace'
    | 'home'
    | 'stateHome'
    | 'protectedPaths'
    | 'secretPaths'
    | 'forbiddenReads'
    | 'forbiddenCommands'
    | 'userPath'
    | 'allowedDomains'
    | 'limits'
  >
  remove(): void
}

/** Limits small enough that exceeding one in a broken sandbox costs little: the attempts stop by themselves just above them. */
const limits = { memoryBytes: 256 * 2 ** 20, totalMemoryBytes: 320 * 2 ** 20, processes: 48, fileBytes: 8 * 2 ** 20, cpuSeconds: 20 }

/** Create the sandbox under test with the returned `settings`. */
export function prepareGround(): Ground {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-probe-')))
  const token = `canary-${crypto.randomUUID()}`
  const at = (...names: string[]) => join(root, ...names)
  for (const path of ['workspace/nested/.git/hooks', 'workspace/private', 'outside', 'home/.ssh', 'home/.local/bin', 'state'])
    mkdirSync(at(path), { recursive: true })
  for (const path of ['home/.ssh/id_canary', 'state/receipt.key', 'workspace/private/secret.pem', 'workspace/nested/.env'])
    writeFileSync(at(path), token)
  writeFileSync(at('home/.local/bin/tool'), '#!/bin/sh\n', { mode: 0o755 })
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
      forbiddenReads: ['.env'],
      forbiddenCommands: ['rm'],
      userPath: at('home/.local/bin'),
      allowedDomains: [],
      limits,
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}
