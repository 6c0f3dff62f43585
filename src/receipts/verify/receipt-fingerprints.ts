/** Stores about twenty bytes per receipt for the deep check, so that a million receipts do not fill the memory. */

import type { Receipt } from '../form/receipt.ts'

/** The fields of a call that receipt and journal share. `sandbox` is compared only where the journal contains it. */
export type ExpectedReceipt = {
  readonly id: string
  readonly conversationId: string
  readonly tool: string
  readonly argsHash: string
  readonly status: string
  readonly resultHash: string
  readonly sandbox?: string
  readonly changes?: string
}

export type Fingerprints = {
  /** Returns the highest receipt number. */
  count(): number
  add(receipt: Receipt): void
  has(seq: number): boolean
  /** Tells whether that receipt has these values. */
  fits(seq: number, told: ExpectedReceipt): boolean
  /** Marks the receipt as named by the journal. @returns false when it was already marked */
  take(seq: number): boolean
  isTaken(seq: number): boolean
  /** Returns how many receipts the journal did not name. */
  untaken(): number
}

/** Bytes of a SHA-256: enough that nobody finds another text with this prefix. */
const length = 16
const sandboxes: readonly (string | undefined)[] = [undefined, 'bubblewrap', 'landlock', 'none']
const taken = 0x80
const known = 0x40

export function createFingerprints(): Fingerprints {
  let prints = new Uint8Array(length * 1024)
  let marks = new Uint8Array(1024)
  let highest = 0

  function grow(seq: number): void {
    const room = Math.max(seq + 1, marks.length * 2)
    const [more, wider] = [new Uint8Array(room), new Uint8Array(room * length)]
    more.set(marks)
    wider.set(prints)
    marks = more
    prints = wider
  }

  function add({ seq, id, conversation_id, tool, args_hash, status, result_hash, sandbox, changes }: Receipt): void {
    if (seq >= marks.length) grow(seq)
    const told = { id, conversationId: conversation_id, tool, argsHash: args_hash, status, resultHash: result_hash, changes }
    prints.set(printOf(told), seq * length)
    marks[seq] = known | Math.max(0, sandboxes.indexOf(sandbox))
    highest = Math.max(highest, seq)
  }

  const markOf = (seq: number) => marks[seq] ?? 0
  const has = (seq: number) => (markOf(seq) & known) !== 0
  const isTaken = (seq: number) => (markOf(seq) & taken) !== 0

  function fits(seq: number, told: ExpectedReceipt): boolean {
    const at = seq * length
    const isSame = has(seq) && Buffer.from(printOf(told)).equals(prints.subarray(at, at + length))
    return isSame && (told.sandbox === undefined || sandboxes[markOf(seq) & 0x0f] === told.sandbox)
  }

  function take(seq: number): boolean {
    if (isTaken(seq) || !has(seq)) return !isTaken(seq)
    marks[seq] = markOf(seq) | taken
    return true
  }

  function untaken(): number {
    return marks.reduce((sum, mark) => sum + ((mark & (known | taken)) === known ? 1 : 0), 0)
  }

  return { count: () => highest, add, has, fits, take, isTaken, untaken }
}

function printOf({ id, conversationId, tool, argsHash, status, resultHash, changes }: ExpectedReceipt): Uint8Array {
  const text = JSON.stringify([id, conversationId, tool, argsHash, status, resultHash, changes])
  return new Bun.CryptoHasher('sha256').update(text).digest().subarray(0, length)
}
