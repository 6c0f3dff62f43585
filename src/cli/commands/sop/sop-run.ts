/** Implements `sop run | resume | status | cancel`: it runs procedures at this terminal and shows how far they are. */

import { takeTurn } from '../../../channels/take-turn.ts'
import { readAnswer } from '../../../channels/terminal/approval-prompt.ts'
import { atTerminal, terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { differenceLines } from '../../../channels/terminal/slash/past-changes.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import type { Conversation, Host, Setup } from '../../../host/api.ts'
import { patchText } from '../../../host/changes/patch-text.ts'
import { runAttempts } from '../../../host/changes/run-attempts.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { withRecords } from '../../../host/open/open-records.ts'
import { sopRecords } from '../../../host/records/sop-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { cut, flat, visible, visibleLines } from '../../../kit/text.ts'
import type { SopRunRow, SopStepRow } from '../../../memory/journal/sop-store.ts'
import { findSop, findSops, sopTools } from '../../../sop/find-sops.ts'
import { beginSop, cancelRun, existingRun, runSop, type SopRun, type SopTurns, showRun } from '../../../sop/run-sop.ts'
import { command, type Flags, type Given } from '../../args/command.ts'
import { approveFlag, autonomyFlag, jsonFlag, limitOf20, modelFlag, sandboxFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList, printOne } from '../../print-list.ts'

const turnFlags = { ...modelFlag, ...sandboxFlag, ...approveFlag, ...autonomyFlag, ...workspaceFlag, ...jsonFlag } as const satisfies Flags
type TurnFlags = Given<typeof turnFlags>
const runArg = { run: { type: 'text', about: 'The id of a run, the beginning of one, or "last"' } } as const

const exits = [[1, 'a step failed'], [4, 'it waits for a person'], 6, 9, 130] as const

export const run = command({
  flags: {
    input: { type: 'text', many: true, about: 'An input: NAME=VALUE; may be repeated' },
    dryRun: {
      type: 'boolean',
      about: 'Run it in a copy of the workspace that is removed, say yes there, send nothing, and print what would change',
    },
    ...turnFlags,
  },
  args: { name: { type: 'text', about: 'Name of the procedure', complete: 'sops' } },
  examples: [
    ['daily-check', 'asks at this terminal; without one it waits for an answer from elsewhere'],
    ['deploy --input version=1.2 --json', 'with an input, for scripts'],
    ['daily-check --dry-run', 'the difference that it would make'],
  ],
  exits,
  async run(context, { input = [], dryRun = false, ...flags }, { name }) {
    if (dryRun && flags.sandbox === 'none') throw usageError('--dry-run needs a sandbox: without one a command reaches more than the copy')
    await withTurns(context, flags, async (turns, setup, host) => {
      const file = await findSop(setup, await sopTools(setup), name)
      const begin = (inFolder: Setup, by: string) =>
        beginSop(file, { setup: inFolder, records: turns.records, inputs: inputsOf(input), by })
      if (!dryRun) return runSop(begin(setup, 'cli').id, turns)
      return rehearse({ setup, host, run: (copied, inCopy) => runSop(begin(inCopy, 'dry run').id, { ...turns, ...copied }), turns })
    })
  },
})

type Rehearsal = {
  readonly setup: CliSetup
  readonly host: Host
  readonly turns: SopTurns
  readonly run: (copied: Pick<SopTurns, 'host' | 'ask' | 'onGate'>, inCopy: Setup) => Promise<SopRun>
}

/** Runs it in a copy, where changes and approvals of the procedure are allowed and nothing is sent, and prints the difference. */
async function rehearse({ setup, host, turns, run: runIn }: Rehearsal): Promise<SopRun> {
  const { sops, approvals } = { ...turns.records, approvals: (await host.records()).approvals }
  const seen: { setup?: Setup; run?: SopRun } = {}
  const yes = { allow: true, by: 'dry run', note: 'only in a copy' } as const
  const onGate = (conversation: Conversation) => async (gateId: string) =>
    void (await conversation.approve(
      gateId,
      (await conversation.changesOf(gateId)) ? yes : { allow: false, by: 'dry run', note: 'a dry run sends nothing' },
    ))
  const [attempt] = await runAttempts({
    ...{ host, setup, prompt: 'a dry run of a procedure', count: 1 },
    setupIn(copy) {
      const { security } = setup.config
      const offline = { ...security, allowedDomains: [], egress: 'ask', direct: 'deny' } as const
      seen.setup = { ...setup, config: { ...setup.config, workspaceDir: copy, security: offline } }
      return seen.setup
    },
    open: (inCopy) => host.conversation({ kind: 'new' }, { channel: 'sop', setup: inCopy }),
    async run() {
      const inCopy = seen.setup ?? setup
      const ask: SopTurns['ask'] = async ({ id }) => void (await approvals.decide(id, yes))
      seen.run = await runIn({ host: { ...host, setup: inCopy }, ask, onGate }, inCopy)
      sops.runs.setState(seen.run.id, 'cancelled')
      return { ending: { stop: 'end_turn', code: 'answered', message: '' }, answer: '' }
    },
  })
  if (attempt?.changed) {
    const { process: out, env } = setup.context
    if (isTerminal(1)) out.stderr.write(coloured(differenceLines(attempt.changed.set), wantsColor(env)))
    else out.stderr.write(patchText(attempt.changed.set))
    await (await host.changes()).store.drop(attempt.changed.id)
  }
  setup.context.process.stderr.write('nothing was changed: this was a dry run\n')
  if (seen.run === undefined) throw commandError('the dry run did not begin')
  return seen.run
}

function inputsOf(given: readonly string[]): { readonly [name: string]: string } {
  return Object.fromEntries(
    given.map((each) => {
      const at = each.indexOf('=')
      if (at < 1) throw usageError(`--input ${JSON.stringify(each)}: write NAME=VALUE`)
      return [each.slice(0, at), each.slice(at + 1)]
    }),
  )
}

export const resume = command({
  flags: {
    doubt: {
      type: 'choice',
      values: ['done', 'again', 'skip'],
      about: 'About a step that may have happened: it has, it runs again, or it is left out',
    },
    ...turnFlags,
  },
  args: runArg,
  examples: [
    ['last', 'after an answer, or after a crash'],
    ['sop_4q2fqk8fd4spk980 --doubt done', 'the step in doubt has happened'],
  ],
  exits,
  async run(context, { doubt: answer, ...flags }, { run: ref }) {
    await withTurns(context, flags, async (turns, setup) => {
      const { id, name, digest } = existingRun(turns.records, ref)
      const current = (await findSops(setup, new Map())).find((file) => file.name === name)
      if (current?.digest !== digest) context.process.stderr.write(changedNote(name, current !== undefined))
      return runSop(id, { ...turns, answer })
    })
  },
})

function changedNote(name: string, exists: boolean): string {
  return `note: the procedure ${name} ${exists ? 'has changed' : 'was removed'} since this run began; the run keeps its version\n`
}

/** Opens the home, runs at this terminal, and ends with the exit code of the run. */
async function withTurns(
  context: CliContext,
  flags: TurnFlags,
  use: (turns: SopTurns, setup: CliSetup, host: Host) => Promise<SopRun>,
): Promise<void> {
  const { sandbox, json = false } = flags
  const setup = loadSetup(context, flags)
  const host = await openHost(setup, { ahead: false })
  const { stderr } = context.process
  await using _end = atAsyncEnd(() => host.close())
  using interrupt = onInterrupt(() => {})
  const { signal } = interrupt
  const records = await host.records()
  await records.sops.recover()
  const ask = terminalPrompt(context)
  const onGate = (conversation: Conversation) => atTerminal({ context, conversation, ask, signal }).onGate
  const ended = await use(
    {
      ...{ host, records, takeTurn, onGate, options: { sandbox }, signal },
      tell: (step) => stderr.write(`${stepText(step)}\n`),
      ...(ask && {
        async ask({ id, prompt }) {
          const answer = readAnswer(await ask(`\n${visible(prompt)} [y/N] `, signal))
          if (answer.kind !== 'unclear' && !signal.aborted)
            await records.approvals.decide(id, { allow: answer.kind === 'yes', by: 'terminal', note: answer.note })
        },
      }),
    },
    setup,
    host,
  )
  printOne(context, { json, value: ended, text: runText(ended) })
  const code = codeOf(ended, signal.aborted)
  if (code !== 0) throw new CliExit(code, json ? '' : todo(ended))
}

function codeOf({ state, code }: SopRun, wasStopped: boolean): number {
  if (state === 'failed' && code === 'budget') return exitCodes.budget
  if (state === 'done') return 0
  if (state === 'waiting' || state === 'asked') return exitCodes.approval_needed
  return state === 'cancelled' || wasStopped ? exitCodes.cancelled : exitCodes.error
}

/** Returns what a person can do about a run that has not ended well. */
function todo({ id, state, why, steps }: SopRun): string {
  const questions = steps.flatMap(({ question }) => question ?? [])
  if (state === 'failed') return `error: ${why}`
  if (state === 'cancelled') return ''
  const answer = questions.map((question) => `braidclaw approvals allow ${question} (or deny); `).join('')
  const doubt = state === 'asked' ? ` Has the step happened? Otherwise: braidclaw sop resume ${id} --doubt done|again|skip.` : ''
  return state === 'running'
    ? `stopped; to continue: braidclaw sop resume ${id}`
    : `it waits: ${answer}then: braidclaw sop resume ${id}.${doubt}`
}

function stepText({ step, state, why, output, attempt }: SopStepRow): string {
  const words = why === '' ? cut(visible(flat(output)), 80) : cut(visible(flat(why)), 200)
  return `${step}: ${state}${attempt > 1 ? ` (attempt ${attempt})` : ''}${words === '' ? '' : `  ${words}`}`
}

function runLine({ id, name, state, started, why }: SopRunRow): string {
  return `${id}  ${name}  ${state}  ${new Date(started).toISOString().slice(0, 16)}${why === '' ? '' : `  ${cut(visible(flat(why)), 200)}`}`
}

function runText({ steps, ...row }: SopRun): string {
  const outputs = Object.entries(row.outputs).map(([name, text]) => `${name}:\n${visibleLines(text).trimEnd()}\n`)
  return [`${runLine(row)}\n`, ...steps.map((step) => `  ${stepText(step)}\n`), ...outputs].join('')
}

export const status = command({
  flags: { ...limitOf20, ...jsonFlag },
  args: { run: { ...runArg.run, optional: true } },
  examples: [
    ['', 'the latest runs'],
    ['last --json', 'every step of the latest run, with its output'],
  ],
  exits: [9],
  async run(context, { limit, json = false }, { run: ref }) {
    const setup = loadSetup(context)
    await withRecords(setup, async (base) => {
      const sops = sopRecords(base)
      if (ref === undefined) {
        const items = sops.runs.list({ limit })
        return printList(context, { items, json, lines: items.map(runLine), none: 'no procedure has run yet' })
      }
      const found = showRun({ sops }, ref)
      const current = (await findSops(setup, new Map())).find(({ name }) => name === found.name)
      const isChanged = current?.digest !== found.digest
      printOne(context, { json, value: { ...found, changed: isChanged }, text: runText(found) })
      if (isChanged && !json && found.ended === null) context.process.stderr.write(changedNote(found.name, current !== undefined))
    })
  },
})

export const cancel = command({
  flags: jsonFlag,
  args: runArg,
  examples: [['last', 'its open questions are closed']],
  exits: [9],
  async run(context, { json = false }, { run: ref }) {
    await withRecords(loadSetup(context), (base) => {
      const row = cancelRun({ sops: sopRecords(base) }, ref)
      printOne(context, { json, value: row, text: `cancelled: ${row.id} (${row.name})\n` })
    })
  },
})
