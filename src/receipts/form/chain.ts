/** Checks the rule of the chain: whether a line is the next valid receipt. */

import { genesis, type LinkText, readLink, readReceipt, sealOf } from './receipt.ts'

export type LinkFault = {
  readonly kind: 'form' | 'log' | 'order' | 'link' | 'hash' | 'mac'
  readonly message: string
  readonly id?: string
}

export type Link = { readonly ok: true; readonly at: Position } | { readonly ok: false; readonly fault: LinkFault }

/** How far a chain is known to be valid. `logId` is undefined before the first receipt. */
export type Position = { readonly logId: string | undefined; readonly count: number; readonly head: string }

export const start: Position = { logId: undefined, count: 0, head: genesis }

/** Checks one line that should follow `at`. @returns the position after it */
export function follow(at: Position, line: string | undefined, key: Uint8Array): Link {
  const link = line === undefined ? undefined : readLink(line)
  const fault = link ? faultOf(at, link, key) : notCanonical
  if (!link || fault) return { ok: false, fault: { ...(fault ?? notCanonical), ...idOf(line) } }
  return { ok: true, at: { logId: link.logId, count: link.seq, head: link.own } }
}

const notCanonical = { kind: 'form', message: 'the line is not a receipt in canonical form' } as const

function faultOf(at: Position, link: LinkText, key: Uint8Array): Omit<LinkFault, 'id'> | undefined {
  const { seq, logId, previous, own, content } = link
  if (at.logId !== undefined && logId !== at.logId) return { kind: 'log', message: `it belongs to another log (${logId}, not ${at.logId})` }
  if (seq !== at.count + 1) return { kind: 'order', message: `it says it is receipt ${seq}` }
  if (previous !== at.head) return { kind: 'link', message: 'its previous_hash is not the hash of the receipt before it' }
  if (content !== own) return { kind: 'hash', message: 'its content does not match its receipt_hash' }
  if (sealOf(key, own) !== link.mac) return { kind: 'mac', message: 'its mac was not made with this key' }
  return undefined
}

function idOf(line: string | undefined): { id?: string } {
  const receipt = line === undefined ? undefined : readReceipt(line)
  return receipt ? { id: receipt.id } : {}
}
