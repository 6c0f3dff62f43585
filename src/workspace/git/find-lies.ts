/** Checks what git derives from objects and then believes: the indexes of packs, and the graph of commits. */

import { inFolder } from '../../security/changes/change-view.ts'
import type { Repository } from './changed-repository.ts'
import { openObjects } from './read-objects.ts'

const mostPacked = 10_000
const mostGraphBytes = 16 * 1024 ** 2
const noParent = 0x70000000

/** A pack whose index gives another object's place would show other content under an id that every older tree names. */
export function findLies({ own, rest, places, view, common, history, unread }: Repository): void {
  const made = own.flatMap(({ path, after }) => (after?.kind === 'file' ? [path] : []))
  const packs = made.filter((path) => /^objects\/pack\/[^/]+\.(?:idx|pack)$/.test(rest(path)))
  if (packs.length > 0) {
    using objects = openObjects(places, (path) => packs.some((pack) => path.endsWith(`/${pack}`)))
    const ids = objects.packed(mostPacked)
    if (ids === undefined) unread.add(`its new packs have more than ${mostPacked} objects, too many to be read`)
    if ([...(ids ?? [])].some((id) => objects.read(id) === undefined)) unread.add('a new pack holds other objects than its index says')
  }
  const graph = inFolder(common, 'objects/info/commit-graph')
  if (made.some((path) => /^objects\/(?:info\/commit-graphs\/|pack\/multi-pack-index)/.test(rest(path))))
    unread.add('an index over several packs or graphs is new, and was not read')
  const isTrue = !made.includes(graph) || agrees(Buffer.from(view.start(graph, 'after', mostGraphBytes) ?? new Uint8Array()), history)
  if (!isTrue) unread.add('objects/info/commit-graph tells git of other commits than there are, or is too large to be read')
}

/** Whether each commit in the graph has the tree and the first two parents that it really has. */
function agrees(graph: Buffer, history: Repository['history']): boolean {
  try {
    const idBytes = graph[5] === 2 ? 32 : 20
    const chunks = Array.from({ length: graph[6] ?? 0 }, (_, at) => 8 + at * 12)
    const [table, ids, data] = ['OIDF', 'OIDL', 'CDAT'].map((name) => {
      const found = chunks.find((at) => graph.toString('latin1', at, at + 4) === name)
      return found === undefined ? Number.NaN : Number(graph.readBigUInt64BE(found + 4))
    }) as [number, number, number]
    const number = graph.readUInt32BE(table + 255 * 4)
    if (number * (idBytes * 2 + 16) > graph.length) return false
    const idAt = (at: number) => graph.toString('hex', at, at + idBytes)
    return Array.from({ length: number }, (_, place) => place).every((place) => {
      const at = data + place * (idBytes + 16)
      const commit = history.commit(idAt(ids + place * idBytes))
      const parents = [0, 4].flatMap((more, nth) => {
        const parent = graph.readUInt32BE(at + idBytes + more)
        if (parent === noParent) return []
        return [parent >= 0x80000000 ? commit?.parents[nth] : idAt(ids + parent * idBytes)]
      })
      return (
        commit?.tree === idAt(at) &&
        parents.every((parent, nth) => parent === commit.parents[nth]) &&
        parents.length === Math.min(2, commit.parents.length)
      )
    })
  } catch {
    return false
  }
}
