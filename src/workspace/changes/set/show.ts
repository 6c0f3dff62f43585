/** Shows one change set with the content of its files before and after, as long as these are still the same. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../../kit/sha256.ts'
import type { Change, EntryState } from '../../../runtime/changes.ts'
import type { Shown, Side } from '../contract.ts'
import { startAt } from '../tree/content.ts'
import { folderOf, lastOf, namesOf, type RawName, rawName } from '../tree/names.ts'
import { openTree } from '../tree/tree.ts'
import { type Item, readPlan } from './plan.ts'
import { pathsOf, stageOf, summaryOf } from './set-folder.ts'

const MOST_HASHED = 64 * 2 ** 20

/** @returns undefined when there is no such change set @throws when its files are damaged */
export function showSet(folder: string, id: string): Shown | undefined {
  const stage = stageOf(folder)
  if (stage === undefined) return undefined
  const paths = pathsOf(folder)
  const changes = (paths.length > 0 ? paths.map(({ first }) => first) : itemsOf(folder)).map(changeOf)
  const states = new Map(changes.map((change) => [change.path, change]))
  return {
    ...summaryOf(id, stage),
    changes,
    upper: join(folder, 'up'),
    undone: paths.filter(({ isChanged }) => !isChanged).map(({ raw }) => namesOf(raw).path),
    read(path, side, maxBytes) {
      const change = states.get(path)
      const state = change?.[side]
      return change === undefined || state?.kind !== 'file'
        ? undefined
        : readSide({ folder, workspace: stage.header.workspace }, { raw: rawName(change), side, state, maxBytes })
    },
  }
}

function itemsOf(folder: string): readonly Item[] {
  const name = ['plan', 'stuck', 'pending'].find((one) => existsSync(join(folder, one)))
  return name === undefined ? [] : readPlan(join(folder, name)).items
}

function changeOf({ path, bytes, before, after }: Item): Change {
  return { path, ...(bytes !== undefined && { bytes }), ...(before && { before }), ...(after && { after }) }
}

type Reading = { readonly raw: RawName; readonly side: Side; readonly state: EntryState; readonly maxBytes: number }

/** What was before is kept in `undo` or still in the workspace; what comes after waits in `up` or is in the workspace. */
function readSide(
  { folder, workspace }: { readonly folder: string; readonly workspace: string },
  reading: Reading,
): Uint8Array | undefined {
  for (const root of [join(folder, reading.side === 'before' ? 'undo' : 'up'), workspace]) {
    const bytes = readIn(root, reading)
    if (bytes !== undefined) return bytes
  }
  return undefined
}

function readIn(root: string, { raw, state, maxBytes }: Reading): Uint8Array | undefined {
  try {
    using tree = openTree({ root, asItIs: true })
    const found = tree.look(raw)
    if (found?.kind !== 'file' || (state.size !== undefined && found.size !== state.size)) return undefined
    const start = startAt({ folder: tree.folder(folderOf(raw)), name: lastOf(raw) }, found.size > MOST_HASHED ? maxBytes : MOST_HASHED)
    // Nobody sees more than the beginning of a larger file, and hashing all of it would block the process.
    const isSame = state.sha256 === undefined || found.size > MOST_HASHED || state.sha256 === sha256(start)
    return isSame ? start.subarray(0, maxBytes) : undefined
  } catch {
    return undefined
  }
}
