/** Implements `receipt list | show | verify | accept | anchor | rotate`. */

import { closeSync, constants, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { userInfo } from 'node:os'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { errorCode, explainErrno } from '../../../config/text/read-toml-file.ts'
import { withMemory, withRecords } from '../../../host/open/open-records.ts'
import { createRecord, inRecordWords, receiptPaths, recoverRecord } from '../../../host/records/integrity/create-record.ts'
import {
  type Accepted,
  acceptRecord,
  anchorNow,
  brokenChain,
  type ChainCheck,
  checkChain,
} from '../../../host/records/integrity/receipt-check.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atEnd } from '../../../kit/errors.ts'
import { count, visible } from '../../../kit/text.ts'
import { hashJson } from '../../../memory/journal/receipt-draft.ts'
import { anchorLine, parseAnchor } from '../../../receipts/form/anchor.ts'
import { listReceipts, showReceipt } from '../../../receipts/list-receipts.ts'
import { rotate as rotateLog } from '../../../receipts/rotate.ts'
import { isOperatorAction, wordsUnder } from '../../../receipts/without-run.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, limitOf20 } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList, printOne } from '../../print-list.ts'

export const list = command({
  flags: { ...limitOf20, ...jsonFlag },
  examples: [['--limit 5', 'the latest five']],
  run(context, { limit, json = false }) {
    const found = listReceipts({ path: loadSetup(context).config.receipts.path, limit })
    if (!found.ok) throw commandError(`${found.failure.message}`)
    if (found.unreadable > 0)
      context.process.stderr.write(
        `warning: ${count(found.unreadable, 'line')} among these cannot be read; run: braidclaw receipt verify\n`,
      )
    const lines = found.receipts.map(
      ({ seq, id, timestamp, tool, status, risk }) =>
        `${String(seq).padStart(6)}  ${timestamp}  ${status.padEnd(7)}  ${risk.padEnd(6)}  ${visible(tool).padEnd(14)}  ${id}`,
    )
    printList(context, { items: found.receipts, json, lines, none: 'no receipts yet' })
  },
})

/** Shows the operator's own text too, when the receipt contains its hash. */
export const show = command({
  flags: jsonFlag,
  args: { receipt: { type: 'text', about: 'Receipt id or number' } },
  examples: [['7', 'the seventh']],
  async run(context, { json = false }, { receipt: wanted }) {
    const setup = loadSetup(context)
    const receipt = showReceipt(setup.config.receipts.path, wanted)
    if (!receipt) throw commandError(`no receipt "${wanted}"; see: braidclaw receipt list`)
    const words = isOperatorAction(receipt) ? await withMemory(setup, ({ actions }) => wordsUnder(receipt, actions.wordsOf)) : undefined
    context.process.stdout.write(`${JSON.stringify(words === undefined ? receipt : { ...receipt, words }, null, json ? 0 : 2)}\n`)
  },
})

export const verify = command({
  flags: {
    deep: { type: 'boolean', about: 'Also join the journal: every attempt has its receipt, every hash its content' },
    against: { type: 'text', about: 'An anchor line kept elsewhere, or a file that holds one' },
    ...jsonFlag,
  },
  examples: [
    ['', 'chain, mac, head and checkpoint'],
    ['--deep', 'and that every result matches its hash'],
    ['--against bc1:…', 'and that nothing was cut since that anchor'],
  ],
  exits: [9],
  async run(context, { deep = false, against, json = false }) {
    const setup = loadSetup(context)
    const anchor = against === undefined ? undefined : anchorOf(against)
    await withMemory(setup, (memory) => {
      const checked = checkChain({ setup, memory, anchor, deep })
      const { found, joined, unfinished, older } = checked
      const ok = found.ok && joined.length === 0
      if (json) context.process.stdout.write(`${JSON.stringify({ ...found, ok, deep: joined, unfinished, older })}\n`)
      else report(context, checked)
      if (!ok) throw new CliExit(exitCodes.integrity)
    })
  },
})

function report({ process: { stdout, stderr } }: CliContext, { found, joined, unfinished, older }: ChainCheck): void {
  for (const { message } of found.warnings) stderr.write(`warning: ${message}\n`)
  for (const message of older) stderr.write(`warning: of an older version: ${message}\n`)
  for (const message of unfinished) stderr.write(`unfinished: ${message}\n`)
  const [first] = found.problems
  if (first) stdout.write(`${brokenChain(first)}\n`)
  for (const { message } of joined) stdout.write(`the record was altered: ${message}\n`)
  if (!first && joined.length === 0) stdout.write(`valid: ${count(found.count, 'receipt')}; completeness ${found.completeness}\n`)
}

/** Parses an anchor line, or a file that contains one. @throws CliExit 2 when it is neither. */
function anchorOf(given: string) {
  const text = !given.startsWith('bc1:') && existsSync(given) ? readFileSync(given, 'utf8') : given
  const anchor = parseAnchor(text)
  if (anchor) return anchor
  const what = 'neither an anchor line (bc1:…) nor a file that holds one'
  throw usageError(`"${given.slice(0, 80)}" is ${what}; "braidclaw receipt anchor" prints one`)
}

/** Prints the anchor line, and also stores it in each given place. */
export const anchor = command({
  flags: {
    to: { type: 'text', about: 'Append the line to this file' },
    gitNote: { type: 'boolean', about: "Add it to a note on the workspace's HEAD (refs/notes/braidclaw)" },
    command: { type: 'boolean', about: 'Give it to a command on stdin; no shell' },
    ...jsonFlag,
  },
  args: { word: { type: 'text', many: true, optional: true, about: 'With --command, after --: the command' } },
  examples: [
    ['--to /mnt/elsewhere/anchors', 'keep it on another disk'],
    ['--git-note', 'keep it with the code, and push refs/notes/braidclaw'],
    ['--command -- ssh host tee -a anchors', 'keep it on another machine'],
  ],
  exits: [9],
  async run(context, { to, gitNote = false, command = false, json = false }, { word: argv }) {
    const setup = loadSetup(context)
    if (command !== argv.length > 0) throw usageError('--command takes the command and its arguments after --, and nothing else takes any')
    await withMemory(setup, async (memory) => {
      const checkpoint = anchorNow(setup, memory)
      const line = anchorLine(checkpoint)
      if (to !== undefined) anchorToFile(to, line)
      if (gitNote) await anchorToGit(setup.config.workspaceDir, line)
      if (command) await pipeTo(argv, line)
      printOne(context, { json, value: { ...checkpoint, line }, text: `${line}\n` })
    })
  },
})

/** Without a note it only shows what would be accepted. */
export const accept = command({
  flags: { note: { type: 'text', about: 'Why; kept for good with the receipt' }, ...jsonFlag },
  examples: [
    ['', 'only look at what would be accepted'],
    ['--note "the disk died; restored Monday\'s copy"', 'accept it'],
  ],
  exits: [9],
  async run(context, { note, json = false }) {
    const setup = loadSetup(context)
    if (note?.trim() === '') throw usageError('--note "" says nothing; say why you accept the record as it is')
    await withRecords(setup, ({ memory, record }) => {
      const found = inRecordWords(() => acceptRecord({ setup, memory, record, by: userName(), note }))
      const lines = acceptedLines(found)
      const text = `${lines.join('\n') || 'there is nothing to accept'}\n`
      printOne(context, { json, value: { ...found, accepted: found.receipt !== undefined }, text })
      if (lines.length > 0 && note === undefined)
        throw usageError('nothing was accepted: add --note WHY to accept this as it is; it leaves a receipt')
    })
  },
})

function acceptedLines({ database, problems, receipts, receipt }: Accepted): string[] {
  const ownerless = receipts.map(({ first, last }) => (first === last ? `receipt ${first}` : `receipts ${first} to ${last}`))
  return [
    ...(database === undefined ? [] : [database]),
    ...problems.map(visible),
    ...ownerless.map((which) => `belonging to no run: ${which}`),
    ...(receipt === undefined ? [] : [`accepted: ${receipt}`]),
  ]
}

/** Returns the user name as the system knows it; some systems have only a number. */
function userName(): string {
  const { username, uid } = userInfo()
  return username === 'unknown' ? `user ${uid}` : username
}

/** Begins a new file; the chain continues across both files. */
export const rotate = command({
  flags: jsonFlag,
  examples: [['', 'tool_receipts.log becomes tool_receipts.1.log']],
  exits: [9],
  async run(context, { json = false }) {
    const setup = loadSetup(context)
    await withMemory(setup, async (memory) => {
      anchorNow(setup, memory)
      // First records the results of a crash in the file to which they belong.
      if (setup.config.receipts.enabled) await recoverRecord(setup, createRecord({ ...setup, redact: setup.redactor.json }, memory))
      const rotated = memory.transaction(() => {
        const made = rotateLog({ paths: receiptPaths(setup), checkpoint: memory.checkpoint.get(), draft: rotationDraft(Date.now()) })
        if (made.ok && made.checkpoint) memory.checkpoint.put(made.checkpoint)
        return made
      })
      if (!rotated.ok)
        throw new CliExit(rotated.failure.code === 'altered' ? exitCodes.integrity : exitCodes.error, `error: ${rotated.failure.message}`)
      const { segment, receiptIds } = rotated
      const [receipt] = receiptIds
      printOne(context, { json, value: { segment, receipt }, text: `closed: ${segment}; ${receipt} begins the next\n` })
    })
  },
})

function rotationDraft(at: number) {
  const [argsHash, resultHash] = [hashJson({}), hashJson({ status: 'allowed', output: '' })]
  const body = { at, conversationId: 'none', tool: 'receipts.rotate', argsHash, resultHash, approval: 'operator' }
  return { ...body, status: 'allowed' as const, risk: 'low' as const }
}

/** Appends the line in one write and syncs it to disk before it returns; existing content stays. @throws CliExit 1 */
function anchorToFile(path: string, line: string): void {
  try {
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK
    const file = openSync(path, flags, 0o600)
    using _end = atEnd(() => closeSync(file))
    const bytes = Buffer.from(`${line}\n`)
    if (writeSync(file, bytes) < bytes.length) throw commandError(`${path}: the line did not fit; not anchored`)
    fsyncSync(file)
  } catch (error) {
    if (error instanceof CliExit) throw error
    throw commandError(`not anchored: ${path}: ${explainErrno(errorCode(error))}`)
  }
}

/** Keeps earlier notes on the same commit. It runs no hooks and filters of the repository. @throws CliExit 1 */
function anchorToGit(workspace: string, line: string): Promise<void> {
  const settings = ['core.hooksPath=/dev/null', 'user.name=braidclaw', 'user.email=braidclaw@localhost'].flatMap((each) => ['-c', each])
  return pipeTo(['git', '-C', workspace, ...settings, 'notes', '--ref=refs/notes/braidclaw', 'append', '-F', '-', 'HEAD'], line)
}

/**
 * Starts the command without a shell, with the line as stdin. Its error output appears in the error message. @throws CliExit 1 when it
 * fails
 */
async function pipeTo(argv: readonly string[], line: string): Promise<void> {
  const child = spawned(argv, line)
  const [said, code] = await Promise.all([child.stderr.text(), child.exited])
  if (code === 0) return
  const words = said.trim().split('\n').at(-1) ?? ''
  throw commandError(`not anchored: ${argv[0]} ended with ${child.signalCode ?? code}${words ? `: ${words}` : ''}`)
}

function spawned(argv: readonly string[], line: string) {
  try {
    return Bun.spawn([...argv], { stdin: new Blob([`${line}\n`]), stdout: 'ignore', stderr: 'pipe' })
  } catch (error) {
    throw commandError(`not anchored: ${argv[0]} cannot be started: ${explainErrno(errorCode(error))}`)
  }
}
