/** Implements `control run list | show | log | artifacts`. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { errorCode, explainErrno } from '../../../../config/text/read-toml-file.ts'
import type { Run } from '../../../../control/contract/run-shapes.ts'
import { runStates } from '../../../../control/contract/state-names.ts'
import { sleep } from '../../../../kit/abort.ts'
import { grouped } from '../../../../kit/text.ts'
import type { Arguments, Flags } from '../../../args/command.ts'
import { CliExit, commandError, exitCodes } from '../../../exit.ts'
import { printList, printOne } from '../../../print-list.ts'
import { idOf } from '../connect/argument-values.ts'
import {
  controlCommand,
  controlFlags,
  present,
  proposeControlAgents,
  proposeControlRuns,
  proposeTasks,
  urlFlag,
} from '../connect/control-flags.ts'
import { terminalWidth } from '../connect/screen.ts'
import type { Control } from '../connect/with-control.ts'
import { runLines, runText } from '../text/control-text.ts'
import { oneLine, table } from '../text/table.ts'

export const list = controlCommand({
  flags: {
    task: { type: 'text', about: 'Only of this task', complete: proposeTasks },
    agent: { type: 'text', about: 'Only of this agent', complete: proposeControlAgents },
    state: { type: 'choice', values: runStates, about: 'Only in this state' },
    limit: { type: 'whole', min: 1, max: 200, default: 50, about: 'How many at most' },
    after: { type: 'text', about: 'Continue after this run of the previous list' },
    ...controlFlags,
  },
  examples: [
    ['', 'the latest 50: one claim of one task each'],
    ['--state running', 'what runs now'],
  ],
  async run({ context, control, json }, given) {
    const { task, agent, state, limit, after } = given
    const { runs, next } = await control.runs.list(
      present({ task_id: task && idOf('task', task), agent_id: agent, state, limit, after: after && idOf('run', after) }),
    )
    printList(context, { items: runs, json, lines: runLines(runs, Date.now(), terminalWidth()), none: 'no runs here' })
    if (next !== null) context.process.stderr.write(`more: add --after ${next}\n`)
  },
})

export const runArgs = {
  run: { type: 'text', about: 'Its id, such as RUN-001', complete: proposeControlRuns },
} as const satisfies Arguments

export const show = controlCommand({
  args: runArgs,
  examples: [['RUN-001', 'who ran it, how it ended, its tokens, changes and artifacts']],
  async run({ context, control, json }, _, { run: typed }) {
    const id = idOf('run', typed)
    const run = await control.runs.get(id)
    printOne(context, { json, value: run, text: runText(run, Date.now()) })
  },
})

export const log = controlCommand({
  flags: { follow: { type: 'boolean', short: 'f', about: 'Continue to print until the run has ended, or Ctrl-C' }, ...urlFlag },
  args: runArgs,
  examples: [
    ['RUN-001', 'what its runner printed, byte for byte into a pipe; on a terminal escaped'],
    ['RUN-001 -f', 'and what follows, until the run has ended'],
  ],
  exits: [130],
  async run({ context, control, signal }, given, { run: typed }) {
    const id = idOf('run', typed)
    const printed = await printLog(context, control, { id, follow: given.follow ?? false, signal })
    if (signal.aborted) throw new CliExit(exitCodes.cancelled)
    if (printed === 0) context.process.stderr.write(`${id} printed nothing${given.follow ? '' : ' so far'}\n`)
  },
})

/** Returns the number of bytes. A run that has ended gets no more log, so its state is read before its log. */
async function printLog(
  { process: { stdout }, outputClosed }: CliContext,
  control: Control,
  { id, follow, signal }: { readonly id: string; readonly follow: boolean; readonly signal: AbortSignal },
): Promise<number> {
  const decoder = new TextDecoder()
  let at = 0
  for (;;) {
    const run = await control.runs.get(id)
    for await (const bytes of logPieces(control, id, at)) {
      at += bytes.length
      stdout.stream(decoder.decode(bytes, { stream: true }))
      if (outputClosed()) return at
    }
    if (!follow || run.state !== 'running' || outputClosed() || signal.aborted) return at
    await sleep(lookAgainMs, signal)
  }
}

const lookAgainMs = 400

/** Yields the log from a byte on, a piece for each answer. */
export async function* logPieces(control: Control, id: string, from = 0): AsyncGenerator<Uint8Array> {
  for (let at = from, total = at + 1; at < total; ) {
    const piece = await control.runs.log(id, at)
    if (piece.bytes.length === 0) return
    yield piece.bytes
    total = piece.total
    at += piece.bytes.length
  }
}

const flags = {
  to: { type: 'text', about: 'Save them in this folder; files that are there stay as they are' },
  ...controlFlags,
} as const satisfies Flags

export const artifacts = controlCommand({
  flags,
  args: runArgs,
  examples: [
    ['RUN-001', 'names, sizes and SHA-256'],
    ['RUN-001 --to results', 'saves them; each digest is checked first'],
  ],
  exits: [[9, 'an artifact has another digest than the run delivered']],
  async run({ context, control, json }, given, { run: typed }) {
    const id = idOf('run', typed)
    const run = await control.runs.get(id)
    if (given.to !== undefined) for (const each of run.artifacts) await save(control, id, each, resolve(context.cwd, given.to))
    const lines = table(
      run.artifacts.map(({ name, bytes, digest }) => [name, grouped(bytes), digest]),
      { right: [1], keep: [0, 2] },
    )
    printList(context, { items: run.artifacts, json, lines, none: `${id} delivered no artifacts` })
  },
})

/** @throws CliExit 9 for other bytes than were delivered */
async function save(control: Control, id: string, { name, digest }: Run['artifacts'][number], folder: string): Promise<void> {
  if (!/^[^/\0]{1,255}$/.test(name) || name === '.' || name === '..')
    throw commandError(`${id}: the artifact name ${JSON.stringify(name)} is not a valid file name here`)
  const { bytes } = await control.runs.artifact(id, name)
  const found = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  if (found !== digest.replace(/^sha256[:-]/, ''))
    throw new CliExit(
      exitCodes.integrity,
      `error: ${oneLine(name)} of ${id} has the digest ${found}, not ${digest}; nothing of it was saved`,
    )
  write(folder, name, bytes)
}

function write(folder: string, name: string, bytes: Uint8Array): void {
  const path = join(folder, name)
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, bytes, { flag: 'wx' })
  } catch (error) {
    throw commandError(`${oneLine(path)} cannot be written: ${explainErrno(errorCode(error))}`)
  }
}
