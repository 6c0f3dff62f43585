/** Creates the gate's look at repositories; the first git fetch, pull or push loads it. */

import type { ReadRepository } from '../../../security/command/transfer/transfer.ts'
import type { Policy } from '../../../security/policy.ts'
import type { Setup } from '../../api.ts'

export function createRepositoryReader({ context }: Pick<Setup, 'context'>, { workspace, home }: Policy): ReadRepository {
  return async (cwd, folders) => {
    const { readRepository } = await import('./repository-facts.ts')
    return readRepository({ workspace, home, env: context.env }, cwd, folders)
  }
}
