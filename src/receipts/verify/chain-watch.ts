/** Checks the chain of receipts step by step while it grows, so that its validity is known at any time at little cost. */

import { statSync } from 'node:fs'
import { errorText } from '../../kit/errors.ts'
import { follow, type Position, start } from '../form/chain.ts'
import { readLines } from '../form/receipt-lines.ts'
import { readKey } from '../key.ts'
import { filesOf } from '../segments.ts'

export type ChainState = {
  /** Undefined until the whole log was read once. */
  readonly valid: boolean | undefined
  /** How many receipts are known to be in order. */
  readonly count: number
  readonly problem?: string
}

export type ChainWatch = {
  /** Reads the new receipts, for at most `ms` milliseconds. Call it again while it returns true. Never throws. */
  read(ms: number): boolean
  state(): ChainState
}

type ReadFile = { readonly ino: number; bytes: number; changed: number }

/**
 * A file that became shorter, or that was changed without becoming longer, is read again from the beginning. A change in the middle that
 * keeps the time of the file is found by `receipt verify`, which reads everything.
 */
export function createChainWatch({
  log,
  key: keyPath,
  now,
}: {
  readonly log: string
  readonly key: string
  readonly now: () => number
}): ChainWatch {
  let files = new Map<string, ReadFile>()
  let at: Position = start
  let problem: string | undefined
  let whole = false

  function restart(): void {
    files = new Map()
    at = start
    problem = undefined
    whole = false
  }

  /** Tells whether the files are unchanged up to the last position. */
  function holds(): boolean {
    return [...files].every(([path, { ino, bytes, changed }]) => {
      const found = statSync(path, { throwIfNoEntry: false })
      return found !== undefined && found.ino === ino && found.size >= bytes && (found.size > bytes || found.mtimeMs === changed)
    })
  }

  function readFile(path: string, until: number): boolean {
    const found = statSync(path, { throwIfNoEntry: false })
    if (!found) return true
    // A rotation gives the file that we know another name.
    const known = [...files.values()].find(({ ino }) => ino === found.ino) ?? { ino: found.ino, bytes: 0, changed: 0 }
    files.set(path, known)
    const key = readKey(keyPath)
    if (known.bytes === found.size) {
      known.changed = found.mtimeMs
      return true
    }
    for (const { text, bytes, torn } of readLines(path, known.bytes)) {
      if (torn) break
      if (!key.ok) throw new Error(key.failure.message)
      const link = follow(at, text, key.key)
      if (!link.ok) throw new Error(`receipt ${at.count + 1}: ${link.fault.message}`)
      at = link.at
      known.bytes += bytes
      if (now() > until) return false
    }
    known.changed = statSync(path).mtimeMs
    return true
  }

  return {
    read(ms) {
      const until = now() + ms
      if (problem !== undefined || !holds()) restart()
      try {
        for (const path of filesOf(log)) if (!readFile(path, until)) return true
        whole = true
      } catch (error) {
        problem = errorText(error)
      }
      return false
    },
    state: () => ({ valid: problem === undefined ? (whole ? true : undefined) : false, count: at.count, problem }),
  }
}
