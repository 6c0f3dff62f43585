/** What a receipt costs: appending with and without fsync, and verifying 200,000 of them. `--json` prints one object. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Checkpoint } from '../src/receipts/contract.ts'
import { draft, mustAppend, pathsIn } from '../src/receipts/fixture.ts'
import { readKey } from '../src/receipts/key.ts'
import { createReceiptLog } from '../src/receipts/ledger.ts'
import { verifyReceipts } from '../src/receipts/verify/verify-chain.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))

/** @returns microseconds each */
function appendOneByOne(name: string, count: number, sync?: (file: number) => void): number {
  const append = createReceiptLog({ paths: pathsIn(join(folder, name)), ...(sync ? { sync } : {}) })
  let checkpoint: Checkpoint | undefined = mustAppend(append, [draft(0)], undefined)
  const begin = performance.now()
  for (let number = 1; number <= count; number += 1) checkpoint = mustAppend(append, [draft(number)], checkpoint)
  return ((performance.now() - begin) / count) * 1000
}

/** @returns receipts verified in a second */
function verifyMany(count: number): number {
  const paths = pathsIn(join(folder, 'many'))
  const append = createReceiptLog({ paths })
  let checkpoint: Checkpoint | undefined
  for (let done = 0; done < count; done += 10_000) {
    checkpoint = mustAppend(
      append,
      Array.from({ length: 10_000 }, (_, at) => draft(done + at)),
      checkpoint,
    )
  }
  const begin = performance.now()
  const verified = verifyReceipts({ path: paths.log, headPath: paths.head, key: readKey(paths.key), checkpoint })
  const seconds = (performance.now() - begin) / 1000
  if (!verified.ok || verified.count !== count) throw new Error(`the log does not verify: ${JSON.stringify(verified.problems)}`)
  return count / seconds
}

try {
  const result = {
    append_us: Math.round(appendOneByOne('plain', 5000, () => {}) * 10) / 10,
    append_fsync_us: Math.round(appendOneByOne('synced', 2000) * 10) / 10,
    verify_per_s: Math.round(verifyMany(200_000)),
  }
  if (process.argv.includes('--json')) console.log(JSON.stringify(result))
  else {
    console.log(`append, no fsync   ${result.append_us} µs`)
    console.log(`append, fsync      ${result.append_fsync_us} µs`)
    console.log(`verify 200,000     ${result.verify_per_s.toLocaleString('en')} receipts/s   (bar: 200,000)`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
