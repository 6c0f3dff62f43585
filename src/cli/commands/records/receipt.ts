/** `receipt list | show | verify | accept | anchor | rotate`. */

import { existsSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { acceptRecord } from '../../../host/integrity/accept-record.ts'
import { brokenChain, type ChainCheck, checkChain } from '../../../host/integrity/receipt-check.ts'
import { createRecord, inRecordWords, receiptPaths, recoverRecord, withMemory } from '../../../host/integrity/recovery.ts'
import { setUp } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import { visible } from '../../../kit/text.ts'
import { hashJson } from '../../../memory/journal/json-hash.ts'
import type { Memory } from '../../../memory/memory.ts'
import { anchorLine, parseAnchor } from '../../../receipts/form/anchor.ts'
import { listReceipts, showReceipt } from '../../../receipts/list-receipts.ts'
import { isOperatorAction, wordsUnder } from '../../../receipts/without-run.ts'
import type { Json } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import type { AcceptFlags, AnchorFlags, ListFlags, VerifyFlags } from '../../routes/types.ts'

export function list(this: CliContext, { limit, json = false }: ListFlags): void {
  const found = listReceipts({ path: setUp(this).config.receipts.path, limit })
  if (!found.ok) throw new CliExit(exitCodes.error, `error: ${found.failure.message}`)
  if (found.unreadable > 0)
    this.process.stderr.write(`warning: ${count(found.unreadable, 'line')} among these cannot be read; run: braidclaw receipt verify\n`)
  if (json) return void this.process.stdout.write(`${JSON.stringify(found.receipts)}\n`)
  if (found.receipts.length === 0) this.process.stderr.write('no receipts yet\n')
  for (const { seq, id, timestamp, tool, status, risk } of found.receipts) {
    this.process.stdout.write(
      `${String(seq).padStart(6)}  ${timestamp}  ${status.padEnd(7)}  ${risk.padEnd(6)}  ${visible(tool).padEnd(14)}  ${id}\n`,
    )
  }
}

/** With the operator's own words, where the receipt vouches for some. */
export async function show(this: CliContext, { json = false }: Json, wanted: string): Promise<void> {
  const setup = setUp(this)
  const receipt = showReceipt(setup.config.receipts.path, wanted)
  if (!receipt) throw new CliExit(exitCodes.error, `error: no receipt "${wanted}"; see: braidclaw receipt list`)
  const words = isOperatorAction(receipt) ? await withMemory(setup, ({ actions }) => wordsUnder(receipt, actions.wordsOf)) : undefined
  this.process.stdout.write(`${JSON.stringify(words === undefined ? receipt : { ...receipt, words }, null, json ? 0 : 2)}\n`)
}

export async function verify(this: CliContext, { deep = false, against, json = false }: VerifyFlags): Promise<void> {
  const setup = setUp(this)
  const anchor = against === undefined ? undefined : anchorOf(against)
  await withMemory(setup, (memory) => {
    const checked = checkChain({ setup, memory, anchor, deep })
    const { found, joined, unfinished, older } = checked
    const ok = found.ok && joined.length === 0
    if (json) this.process.stdout.write(`${JSON.stringify({ ...found, ok, deep: joined, unfinished, older })}\n`)
    else report(this, checked)
    if (!ok) throw new CliExit(exitCodes.integrity)
  })
}

function report({ process: { stdout, stderr } }: CliContext, { found, joined, unfinished, older }: ChainCheck): void {
  for (const { message } of found.warnings) stderr.write(`warning: ${message}\n`)
  for (const message of older) stderr.write(`warning: of an older version: ${message}\n`)
  for (const message of unfinished) stderr.write(`unfinished: ${message}\n`)
  const [first] = found.problems
  if (first) stdout.write(`${brokenChain(first)}\n`)
  for (const { message } of joined) stdout.write(`the record was altered: ${message}\n`)
  if (!first && joined.length === 0) stdout.write(`valid: ${count(found.count, 'receipt')}; completeness ${found.completeness}\n`)
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

/** With a place the line is kept there too; it is printed in any case. */
export async function anchor(
  this: CliContext,
  { to, gitNote = false, command = false, json = false }: AnchorFlags,
  ...argv: string[]
): Promise<void> {
  const setup = setUp(this)
  if (command !== argv.length > 0)
    throw new CliExit(exitCodes.usage, 'error: --command takes the command and its arguments after --, and nothing else takes any')
  await withMemory(setup, async (memory) => {
    const checkpoint = sound(setup, memory)
    const line = anchorLine(checkpoint)
    const { anchorToCommand, anchorToFile, anchorToGit } = await import('./anchor-targets.ts')
    if (to !== undefined) anchorToFile(to, line)
    if (gitNote) await anchorToGit(setup.config.workspaceDir, line)
    if (command) await anchorToCommand(argv, line)
    this.process.stdout.write(json ? `${JSON.stringify({ ...checkpoint, line: anchorLine(checkpoint) })}\n` : `${anchorLine(checkpoint)}\n`)
  })
}

/** Begins a new file; the chain goes on across the two. */
export async function rotateLog(this: CliContext, { json = false }: Json): Promise<void> {
  const setup = setUp(this)
  const { rotate } = await import('../../../receipts/rotate.ts')
  await withMemory(setup, (memory) => {
    sound(setup, memory)
    // What a crash left is recorded in the file that it is in.
    if (setup.config.receipts.enabled) recoverRecord(setup, createRecord({ ...setup, redact: setup.redactor.json }, memory))
    const rotated = memory.transaction(() => {
      const made = rotate({ paths: receiptPaths(setup), checkpoint: memory.checkpoint.get(), draft: rotationDraft(Date.now()) })
      if (made.ok && made.checkpoint) memory.checkpoint.put(made.checkpoint)
      return made
    })
    if (!rotated.ok)
      throw new CliExit(rotated.failure.code === 'altered' ? exitCodes.integrity : exitCodes.error, `error: ${rotated.failure.message}`)
    const { segment, receiptIds } = rotated
    this.process.stdout.write(
      json ? `${JSON.stringify({ segment, receipt: receiptIds[0] })}\n` : `closed: ${segment}; ${receiptIds[0]} begins the next\n`,
    )
  })
}

/** Without a note it is a look at what would be accepted. */
export async function accept(this: CliContext, { note, json = false }: AcceptFlags): Promise<void> {
  const setup = setUp(this)
  if (note?.trim() === '') throw new CliExit(exitCodes.usage, 'error: --note "" says nothing; say why you accept the record as it is')
  const { stdout } = this.process
  await withMemory(setup, (memory) => {
    const record = createRecord({ ...setup, redact: setup.redactor.json }, memory)
    const found = inRecordWords(() => acceptRecord({ setup, memory, record, by: userName(), note }))
    const { database, problems, receipts, receipt } = found
    const isNothing = database === undefined && problems.length + receipts.length === 0
    if (json) stdout.write(`${JSON.stringify({ ...found, accepted: receipt !== undefined })}\n`)
    else {
      for (const line of [...(database === undefined ? [] : [database]), ...problems]) stdout.write(`${visible(line)}\n`)
      for (const { first, last } of receipts)
        stdout.write(`belonging to no run: ${first === last ? `receipt ${first}` : `receipts ${first} to ${last}`}\n`)
      if (isNothing) stdout.write('there is nothing to accept\n')
      if (receipt !== undefined) stdout.write(`accepted: ${receipt}\n`)
    }
    if (!isNothing && note === undefined)
      throw new CliExit(exitCodes.usage, 'error: nothing was accepted: add --note WHY to accept this as it is; it leaves a receipt')
  })
}

/** As the system knows who asks; some systems have a number only. */
function userName(): string {
  const { username, uid } = userInfo()
  return username === 'unknown' ? `user ${uid}` : username
}

function rotationDraft(at: number) {
  const [argsHash, resultHash] = [hashJson({}), hashJson({ status: 'allowed', output: '' })]
  const body = { at, conversationId: 'none', tool: 'receipts.rotate', argsHash, resultHash, approval: 'operator' }
  return { ...body, status: 'allowed' as const, risk: 'low' as const }
}

/** Only a chain that is valid now is worth anchoring. */
function sound(setup: CliSetup, memory: Memory) {
  const checkpoint = memory.checkpoint.get()
  if (!checkpoint) throw new CliExit(exitCodes.error, 'error: there are no receipts to anchor yet')
  const { ok, problems } = checkChain({ setup, memory, deep: false }).found
  if (!ok) throw new CliExit(exitCodes.integrity, `error: not anchored: ${problems.slice(0, 1).map(brokenChain)}`)
  return checkpoint
}
