/** Marks the bubblewrap processes of a sandbox in their command line, so that the next start finds those whose owner was killed. */

import { realpathSync } from 'node:fs'
import { sha256 } from '../../kit/sha256.ts'

/** bubblewrap removes an environment variable that nobody has set: the option has no effect and can carry a name. */
export const markOption = '--unsetenv'

/** @returns a name that identifies the sandbox's private folder and does not tell a command where that is */
export function sandboxMark(folder: string): string {
  return `sandbox_${sha256(realpathSync(folder)).slice(0, 32)}`
}
