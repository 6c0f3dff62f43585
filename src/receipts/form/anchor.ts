/** Defines the anchor: a short line that proves how far a log reached, for the head file and for a copy kept elsewhere. */

import { macOf } from './receipt.ts'

/** Log `logId` has `count` receipts, the last with hash `head`. `mac` authenticates the three; on paper 16 hex digits of it are enough. */
export type Anchor = { readonly logId: string; readonly count: number; readonly head: string; readonly mac: string }

export function sealAnchor(key: Uint8Array, at: Omit<Anchor, 'mac'>): Anchor {
  return { ...at, mac: macOf(key, stem(at)) }
}

/** @returns whether the mac, or the prefix of it in the anchor, was made with this key. */
export function isSealed(key: Uint8Array, anchor: Anchor): boolean {
  return anchor.mac.length >= 16 && macOf(key, stem(anchor)).startsWith(anchor.mac)
}

/** Returns about 130 characters, for a copy kept elsewhere. */
export function anchorLine(anchor: Anchor): string {
  return `${stem(anchor)}:${anchor.mac.slice(0, 16)}`
}

/** Returns the line of the head file, with the whole mac. */
export function headLine(anchor: Anchor): string {
  return `${stem(anchor)}:${anchor.mac}`
}

/** @returns undefined when the text is not an anchor of this version. Ignores white space around it. */
export function parseAnchor(text: string): Anchor | undefined {
  const found = /^bc1:([0-9a-f]{32}):(0|[1-9][0-9]{0,14}):([0-9a-f]{64}):([0-9a-f]{16,64})$/.exec(text.trim())
  if (!found) return undefined
  const [, logId = '', count, head = '', mac = ''] = found
  return { logId, count: Number(count), head, mac }
}

function stem({ logId, count, head }: Omit<Anchor, 'mac'>): string {
  return `bc1:${logId}:${count}:${head}`
}
