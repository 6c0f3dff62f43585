/** Seals of other things than receipts, made with the receipt key: a word of their own before the text keeps the two apart. */

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { macOf } from './form/receipt.ts'
import { createKey, type ReadKey, readKey } from './key.ts'
import type { ReceiptPaths } from './ledger.ts'
import { diskFailure } from './receipt-failure.ts'

/** @returns undefined when there is no key to seal with */
export type Seal = (text: string) => string | undefined

/** Makes the key when there are no receipts yet, as the first receipt would. */
export function createSealer(paths: ReceiptPaths): Seal {
  return (text) => sealWith(keyToSeal(paths), text)
}

/** For checking: the key is read once and never made. */
export function sealsBy(keyPath: string): Seal {
  const key = readKey(keyPath)
  return (text) => sealWith(key, text)
}

function sealWith(key: ReadKey | undefined, text: string): string | undefined {
  return key?.ok ? macOf(key.key, `bc-seal1:${text}`) : undefined
}

function keyToSeal({ log, head, key }: ReceiptPaths): ReadKey | undefined {
  const found = readKey(key)
  if (found.ok || !found.missing || existsSync(log) || existsSync(head)) return found
  try {
    mkdirSync(dirname(key), { recursive: true, mode: 0o700 })
    return createKey(key)
  } catch (error) {
    if (!diskFailure(key, error)) throw error
    return undefined
  }
}
