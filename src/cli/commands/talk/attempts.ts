/** Implements `agent --attempts`: several answers to one question, each with its changes, of which the person keeps one or none. */

import { refusedBy, takeTurn } from '../../../channels/take-turn.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { usageLine } from '../../../channels/terminal/screen/usage-line.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { differenceLines } from '../../../channels/terminal/slash/past-changes.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import type { Conversation, Host, Setup } from '../../../host/api.ts'
import { totals } from '../../../host/changes/change-lines.ts'
import { fileDiffs } from '../../../host/changes/file-diff.ts'
import { type AttemptResult, runAttempts } from '../../../host/changes/run-attempts.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { cut, visible } from '../../../kit/text.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import { CliExit, exitCodes } from '../../exit.ts'

export type AttemptsOptions = {
  readonly setup: CliSetup
  readonly prompt: string
  readonly count: number
  /** The number of the attempt that is kept without a question. */
  readonly keep?: number | undefined
  readonly json: boolean
  readonly setupIn: (copy: string) => Setup
}

export async function compareAttempts(options: AttemptsOptions): Promise<void> {
  const { setup, keep, count } = options
  if (keep !== undefined && (keep < 1 || keep > count))
    throw new CliExit(exitCodes.usage, `error: --keep ${keep}: there are ${count} attempts`)
  const host = await openHost(setup)
  const running = new Set<Conversation>()
  await using _end = atAsyncEnd(() => host.close())
  using interrupt = onInterrupt((by) => {
    for (const conversation of running) conversation.cancel(by)
  })
  const made = await runAttempts({
    ...options,
    host,
    async open(inCopy) {
      const conversation = await host.conversation({ kind: 'new' }, { channel: 'cli', setup: inCopy })
      running.add(conversation)
      return conversation
    },
    run: (conversation, number) => runOne(setup.context, { conversation, number, prompt: options.prompt }),
  })
  await finish(options, host, { made, cancelled: interrupt.signal.aborted })
}

type AttemptOptions = { readonly conversation: Conversation; readonly number: number; readonly prompt: string }

/** Runs one attempt. Changes in its copy need no approval; every other call that needs one is refused. */
async function runOne({ process: { stderr } }: CliContext, { conversation, number, prompt }: AttemptOptions) {
  const answers: string[] = []
  const refuse = refusedBy(conversation)
  const ending = await takeTurn({
    conversation,
    prompt,
    show(event: AgentEvent) {
      if (event.type === 'tool_use') stderr.write(`${number} · ${visible(event.toolName)}\n`)
      else if (event.type === 'done' && event.result !== undefined) answers.push(event.result)
    },
    async onGate(gateId, proposal) {
      if (!(await conversation.changesOf(gateId))) return refuse(gateId, proposal)
      await conversation.approve(gateId, { allow: true, by: 'attempt', note: 'only in the copy of this attempt' })
    },
  })
  stderr.write(`attempt ${number}: ${ending.code}\n`)
  return { ending, answer: answers.join('\n') }
}

type Made = { readonly made: readonly AttemptResult[]; readonly cancelled: boolean }

async function finish(options: AttemptsOptions, host: Host, { made, cancelled }: Made): Promise<void> {
  const { context } = options.setup
  const { store, withReceipt } = await host.changes()
  const dropped = async (kept?: AttemptResult) => {
    for (const { changed } of made) if (changed && changed !== kept?.changed) await store.drop(changed.id)
  }
  if (cancelled) {
    await dropped()
    throw new CliExit(exitCodes.cancelled, 'cancelled: nothing was kept')
  }
  if (options.json) context.process.stdout.write(`${JSON.stringify(made.map(factsOf))}\n`)
  else for (const attempt of made) context.process.stdout.write(`${described(attempt)}\n`)
  const chosen = options.keep ?? (options.json ? undefined : await choose(context, made))
  if (chosen === undefined) {
    const waiting = made.filter(({ changed }) => changed && changed.review.verdict !== 'deny')
    for (const { number, runId } of waiting) context.process.stderr.write(`to keep ${number}: braidclaw changes apply ${runId}/attempt\n`)
    return
  }
  const kept = made.find(({ number }) => number === chosen)
  if (!kept?.changed) {
    await dropped()
    context.process.stderr.write(chosen === 0 ? 'nothing was kept\n' : `attempt ${chosen} changed nothing\n`)
    return
  }
  const { id, review } = kept.changed
  if (review.verdict === 'deny')
    throw new CliExit(
      exitCodes.denied,
      `error: attempt ${chosen} cannot be kept: ${review.reason}; the others wait: braidclaw changes list`,
    )
  const set = store.list().find((each) => each.id === id)
  const act = () => store.apply({ id })
  const applied = await (set ? withReceipt({ tool: 'changes.apply', set }, act) : act())
  if (!applied.ok) throw new CliExit(exitCodes.error, `error: ${applied.message}; the attempts wait: braidclaw changes list`)
  await dropped(kept)
  context.process.stderr.write(`kept: attempt ${chosen}; braidclaw undo takes it back\n`)
}

/** @returns 0 for none; undefined when nobody can be asked */
async function choose(context: CliContext, made: readonly AttemptResult[]): Promise<number | undefined> {
  const ask = terminalPrompt(context)
  if (!ask) return undefined
  for (let tries = 0; tries < 20; tries++) {
    const typed = (await ask(`Keep which? [1-${made.length}, d1 shows its changes, Enter keeps none] `))?.trim().toLowerCase() ?? ''
    if (typed === '' || typed === 'n') return 0
    const [, shows = '', number = ''] = /^(d?)\s*(\d+)$/.exec(typed) ?? []
    const attempt = made.find((each) => each.number === Number(number))
    if (!attempt) continue
    if (shows === '') return attempt.number
    const lines = attempt.changed ? differenceLines(attempt.changed.set) : []
    context.process.stdout.write(coloured(lines, isTerminal(1) && wantsColor(context.env)))
  }
  return 0
}

function described({ number, ending, changed, usage, seconds, answer }: AttemptResult): string {
  const parts = [
    `attempt ${number}: ${ending.code}`,
    changed ? totals(fileDiffs(changed.set)) : 'no changes',
    ...(changed?.review.verdict === 'deny' ? [`cannot be kept: ${visible(changed.review.reason)}`] : []),
    usageLine(usage),
    `${seconds} s`,
  ]
  const words = answer || (ending.code === 'answered' ? '' : ending.message)
  return `${parts.filter((part) => part !== undefined).join(' · ')}\n${cut(words, 2_000)}\n`
}

function factsOf({ number, runId, ending, answer, usage, seconds, changed }: AttemptResult) {
  const change = changed ? { name: `${runId}/attempt`, review: changed.review, changes: changed.set.changes } : undefined
  return { number, runId, ending: ending.code, message: ending.message, answer, usage, seconds, ...(change ? { changed: change } : {}) }
}
