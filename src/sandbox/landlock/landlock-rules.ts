/** Landlock's own numbers: which accesses each version of it knows, and how a rule lies in memory. */

/** Reading, writing, making, removing; what a version does not know cannot be asked for. */
const EXECUTE = 1 << 0
const WRITE_FILE = 1 << 1
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3
const TRUNCATE = 1 << 14
const IOCTL_DEVICE = 1 << 15

const fileBits = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE

/** `list`: the names in a folder, and in those below it. */
export type Grant = 'read' | 'device' | 'write' | 'list'

/** The accesses that version `abi` handles: 13 at first, then moving between folders (2), truncation (3), device commands (5). */
export function handledAccess(abi: number): number {
  const bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13
  return (1 << bits) - 1
}

/** A rule on a file may only name what one can do to a file. */
export function grantedAccess({ grant, abi, folder }: { readonly grant: Grant; readonly abi: number; readonly folder: boolean }): number {
  const wanted = {
    read: EXECUTE | READ_FILE | READ_DIR,
    list: READ_DIR,
    device: READ_FILE | WRITE_FILE | TRUNCATE,
    write: handledAccess(abi) & ~IOCTL_DEVICE,
  }[grant]
  return wanted & handledAccess(abi) & (folder ? -1 : fileBits)
}

/** File accesses; TCP bind and connect from version 4; abstract sockets and signals to the outside from version 6. */
export function rulesetBytes(abi: number): Uint8Array {
  const words = [handledAccess(abi), ...(abi >= 4 ? [0b11] : []), ...(abi >= 6 ? [0b11] : [])]
  return new Uint8Array(BigUint64Array.from(words.map(BigInt)).buffer)
}

/** Packed: eight bytes of accesses, four of descriptor. */
export function ruleBytes(access: number, descriptor: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(12))
  view.setBigUint64(0, BigInt(access), true)
  view.setInt32(8, descriptor, true)
  return new Uint8Array(view.buffer)
}
