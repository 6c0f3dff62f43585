/** `receipt list | show | verify | anchor`. */

import { existsSync, readFileSync } from 'node:fs'
import type { Memory } from '../../memory/db.ts'
import { type Anchor, anchorLine, parseAnchor } from '../../receipts/anchor.ts'
import { deepVerify } from '../../receipts/deep.ts'
import { readKey } from '../../receipts/key.ts'
import { listReceipts, showReceipt } from '../../receipts/read.ts'
import { type Verification, verifyReceipts } from '../../receipts/verify.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { receiptPaths, withMemory } from '../records.ts'
import type { Json } from '../routes/flags.ts'
import type { ListFlags, VerifyFlags } from '../routes/types.ts'
import { setUp } from '../setup.ts'
import type { CliContext, Setup } from '../world.ts'

export function list(this: CliContext, { limit, json = false }: ListFlags): void {
  const found = listReceipts({ path: setUp(this).config.receipts.path, limit })
  if (!found.ok) throw new CliExit(exitCodes.error, `error: ${found.failure.message}`)
  if (found.unreadable.length > 0)
    this.process.stderr.write(`warning: unreadable lines: ${found.unreadable.join(', ')}; run: braidclaw receipt verify\n`)
  if (json) return void this.process.stdout.write(`${JSON.stringify(found.receipts.map(({ receipt }) => receipt))}\n`)
  if (found.receipts.length === 0) this.process.stderr.write('no receipts yet\n')
  for (const { receipt } of found.receipts) {
    const { seq, id, timestamp, tool, status, risk } = receipt
    this.process.stdout.write(
      `${String(seq).padStart(6)}  ${timestamp}  ${status.padEnd(7)}  ${risk.padEnd(6)}  ${tool.padEnd(14)}  ${id}\n`,
    )
  }
}

export function show(this: CliContext, { json = false }: Json, wanted: string): void {
  const receipt = showReceipt(setUp(this).config.receipts.path, wanted)
  if (!receipt) throw new CliExit(exitCodes.error, `error: no receipt "${wanted}"; see: braidclaw receipt list`)
  this.process.stdout.write(`${JSON.stringify(receipt, null, json ? 0 : 2)}\n`)
}

export async function verify(this: CliContext, { deep = false, against, json = false }: VerifyFlags): Promise<void> {
  const setup = setUp(this)
  const anchor = against === undefined ? undefined : anchorOf(against)
  await withMemory(setup, (memory) => {
    const { found, joined } = sure(memory, () => looked({ setup, memory, anchor, deep }))
    const ok = found.ok && joined.length === 0
    if (json) this.process.stdout.write(`${JSON.stringify({ ...found, ok, deep: joined })}\n`)
    else report(this, found, joined)
    if (!ok) throw new CliExit(exitCodes.integrity)
  })
}

type Looked = { readonly found: Verification; readonly joined: readonly { readonly message: string }[] }
type Look = { readonly setup: Setup; readonly memory: Memory; readonly anchor?: Anchor; readonly deep: boolean }

function looked({ setup, memory, anchor, deep }: Look): Looked {
  const { log, head, key } = receiptPaths(setup)
  const found = verifyReceipts({ path: log, headPath: head, key: readKey(key), checkpoint: memory.checkpoint.get(), against: anchor })
  return { found, joined: deep && found.ok ? deepVerify(log, memory.attempts()).problems : [] }
}

/**
 * Log, head file and database are read one after the other, and another process may write in between. Only what is still wrong while
 * nobody can write is wrong; a log without a blemish is not worth making others wait.
 */
function sure(memory: Memory, look: () => Looked): Looked {
  const first = look()
  const spotless = first.found.ok && first.found.warnings.length === 0 && first.joined.length === 0
  return spotless ? first : memory.transaction(look)
}

function report({ process: { stdout, stderr } }: CliContext, found: Verification, joined: readonly { readonly message: string }[]): void {
  for (const { message } of found.warnings) stderr.write(`warning: ${message}\n`)
  const [first] = found.problems
  if (first) stdout.write(`invalid chain at receipt ${first.record}: ${first.message}\n`)
  for (const { message } of joined) stdout.write(`journal and receipts disagree: ${message}\n`)
  if (!first && joined.length === 0) stdout.write(`valid: ${found.count} receipts; completeness ${found.completeness}\n`)
}

/** A line, or a file that holds one. @throws CliExit 2 when it is neither. */
function anchorOf(given: string) {
  const text = !given.startsWith('bc1:') && existsSync(given) ? readFileSync(given, 'utf8') : given
  const anchor = parseAnchor(text)
  if (anchor) return anchor
  throw new CliExit(
    exitCodes.usage,
    `error: "${given.slice(0, 80)}" is no anchor line (bc1:…) nor a file that holds one; "braidclaw receipt anchor" prints one`,
  )
}

export async function anchor(this: CliContext, { json = false }: Json): Promise<void> {
  const setup = setUp(this)
  await withMemory(setup, (memory) => {
    const checkpoint = sound(setup, memory)
    this.process.stdout.write(json ? `${JSON.stringify({ ...checkpoint, line: anchorLine(checkpoint) })}\n` : `${anchorLine(checkpoint)}\n`)
  })
}

/** Only a chain that is valid now is worth anchoring. */
function sound(setup: Setup, memory: Memory) {
  const checkpoint = memory.checkpoint.get()
  if (!checkpoint) throw new CliExit(exitCodes.error, 'error: there are no receipts to anchor yet')
  const { ok, problems } = sure(memory, () => looked({ setup, memory, deep: false })).found
  if (!ok)
    throw new CliExit(exitCodes.integrity, `error: not anchored: invalid chain at receipt ${problems[0]?.record}: ${problems[0]?.message}`)
  return checkpoint
}
