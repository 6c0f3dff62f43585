/** Encodes Landlock's rules: which accesses each version knows, and how a rule is laid out in memory. */

/** Bits for reading, writing, creating and removing; a ruleset may not contain a bit that the version does not know. */
const EXECUTE = 1 << 0
const WRITE_FILE = 1 << 1
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3
const TRUNCATE = 1 << 14
const IOCTL_DEVICE = 1 << 15

const fileBits = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE

/** `list` grants the names in a folder and in all folders below it. */
export type Grant = 'read' | 'device' | 'write' | 'list'

/** @returns the accesses that version `abi` handles: 13 at first, then moving between folders (2), truncation (3), device commands (5) */
export function handledAccess(abi: number): number {
  const bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13
  return (1 << bits) - 1
}

/** A rule on a file may only contain accesses that apply to files. */
export function grantedAccess({ grant, abi, folder }: { readonly grant: Grant; readonly abi: number; readonly folder: boolean }): number {
  const wanted = {
    read: EXECUTE | READ_FILE | READ_DIR,
    list: READ_DIR,
    device: READ_FILE | WRITE_FILE | TRUNCATE,
    write: handledAccess(abi) & ~IOCTL_DEVICE,
  }[grant]
  return wanted & handledAccess(abi) & (folder ? -1 : fileBits)
}

/** Layout: file accesses; TCP bind and connect from version 4; abstract sockets and signals to the outside from version 6. */
export function rulesetBytes(abi: number): Uint8Array {
  const words = [handledAccess(abi), ...(abi >= 4 ? [0b11] : []), ...(abi >= 6 ? [0b11] : [])]
  return new Uint8Array(BigUint64Array.from(words.map(BigInt)).buffer)
}

/** Packed layout: eight bytes of accesses, then four bytes of descriptor. */
export function ruleBytes(access: number, descriptor: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(12))
  view.setBigUint64(0, BigInt(access), true)
  view.setInt32(8, descriptor, true)
  return new Uint8Array(view.buffer)
}
