/** Finds the user's own tools that commands in the sandbox can read and run. */

import { homedir } from 'node:os'
import { findToolchains, type Toolchains } from '../../../sandbox/surroundings/toolchains.ts'
import type { Setup } from '../../api.ts'

export function ownTools({ context, config, paths }: Setup): Toolchains {
  const { PATH: path = '', HOME } = context.env
  return findToolchains({ path, home: HOME || homedir(), except: [config.workspaceDir, paths.home] })
}
