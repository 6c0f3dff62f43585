/** Reads what the gate must know about a repository before git reaches a server: its settings and references, as data. */

import { resolve } from 'node:path'
import type { RepositoryFacts } from '../../../security/command/transfer/transfer.ts'
import { isUnder } from '../../../security/targets/path.ts'
import { readHead, readRefs } from '../../../workspace/git/read-refs.ts'
import { readRepositorySettings, readUserSettings, repositoriesAround } from '../../../workspace/git/read-settings.ts'
import { realPlace } from '../../../workspace/real-place.ts'
import { linkedRepository } from '../git-around.ts'

type Around = {
  readonly workspace: string
  readonly home: string
  readonly env: { readonly [name: string]: string | undefined }
}

/** @returns undefined for a folder whose repository, or whose link to one, is not of the workspace */
export function readRepository({ workspace, home, env }: Around, cwd: string, folders: readonly string[]): RepositoryFacts | undefined {
  const place = realPlace(resolve(cwd, ...folders))
  if (!isUnder(place, workspace)) return
  const [found] = repositoriesAround(place, workspace)
  if (found === undefined) return
  const [git, common] = [realPlace(found.git), realPlace(found.common)]
  const inside = isUnder(git, workspace) && isUnder(common, workspace)
  if (!inside && linkedRepository(found.root) !== found.common) return
  const refs = readRefs(common)
  const { branch, id } = readHead(git, refs)
  return {
    folder: found.root,
    git,
    common,
    inside,
    local: readRepositorySettings({ ...found, git, common }, home),
    user: readUserSettings({ home, configHome: env.XDG_CONFIG_HOME }),
    branch,
    head: id,
    refs,
  }
}
