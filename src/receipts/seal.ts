/** Seals data other than receipts with the receipt key: a prefix of its own keeps these seals distinct from receipt macs. */

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { macOf } from './form/receipt.ts'
import { createKey, type ReadKey, readKey } from './key.ts'
import type { ReceiptPaths } from './ledger.ts'
import { diskFailure } from './receipt-failure.ts'

/** @returns undefined when there is no key */
export type Seal = (text: string) => string | undefined

/** Creates the key when there are no receipts yet, as the first receipt would. */
export function createSealer(paths: ReceiptPaths): Seal {
  return (text) => sealWith(keyToSeal(paths), text)
}

/** For checking: reads the key once and never creates it. */
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
