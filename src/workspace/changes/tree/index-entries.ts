/** Reads the entries of a git index, of versions 2 to 4. */

/** `at` to `end` is the entry without padding; `name` has one character per byte. */
export type IndexEntry = {
  readonly at: number
  readonly end: number
  readonly name: string
  readonly mode: string
  readonly id: string
  /** 0 without a merge conflict. */
  readonly stage: number
  /** Git does not look at the file in the work tree: skip-worktree or assume-unchanged. */
  readonly isHidden: boolean
}

const modeAt = 24
export const statBytes = 40

/** @returns where the entries end @throws Error for what cannot be read to its end */
export function readEntries(index: Buffer, idBytes: number, use: (entry: IndexEntry) => void): number {
  const version = index.readUInt32BE(4)
  if (version < 2 || version > 4) throw new Error(`an index of version ${version}`)
  const count = index.readUInt32BE(8)
  const state = { at: 12, name: '' }
  for (let entry = 0; entry < count; entry++) {
    const { at } = state
    const flagsAt = at + statBytes + idBytes
    const flags = index.readUInt16BE(flagsAt)
    const more = (flags & 0x4000) === 0 ? 0 : index.readUInt16BE(flagsAt + 2)
    const fixed = flagsAt + ((flags & 0x4000) === 0 ? 2 : 4)
    const cut = version === 4 ? prefix(index, fixed) : { bytes: 0, less: state.name.length }
    const end = index.indexOf(0, fixed + cut.bytes)
    if (end < 0) throw new Error('an index that ends early')
    state.name = state.name.slice(0, Math.max(0, state.name.length - cut.less)) + index.toString('latin1', fixed + cut.bytes, end)
    const mode = index.readUInt32BE(at + modeAt).toString(8)
    const id = index.toString('hex', at + statBytes, at + statBytes + idBytes)
    use({ at, end, name: state.name, mode, id, stage: (flags >> 12) & 3, isHidden: (flags & 0x8000) !== 0 || (more & 0x4000) !== 0 })
    state.at = version === 4 ? end + 1 : at + (((end - at) >> 3) + 1) * 8
  }
  return state.at
}

/** In version 4 a number of one or more bytes says how much of the name before is left out. */
function prefix(index: Buffer, at: number): { readonly bytes: number; readonly less: number } {
  let byte = index[at] ?? 0
  const found = { bytes: 1, less: byte & 0x7f }
  while (byte & 0x80) {
    byte = index[at + found.bytes++] ?? 0
    found.less = (found.less + 1) * 128 + (byte & 0x7f)
  }
  return found
}
