/** Implements `agent`: a conversation in the terminal, or one turn. */

import { existsSync } from 'node:fs'
import { createQuestionChannel, runChannel } from '../../../channels/filter/channel.ts'
import { assertCommandLine } from '../../../channels/list.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import type { TurnOptions } from '../../../channels/terminal/run-turn.ts'
import { NoConversation } from '../../../host/run/find-conversation.ts'
import type { ActiveAgent } from '../../../host/setup/agent-profile.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { sayWhere } from '../../../host/setup/workspace-folder.ts'
import { quote } from '../../../kit/text.ts'
import { command, type Flags, type Given, spelled } from '../../args/command.ts'
import { pasteable } from '../../args/resolve-command.ts'
import { acceptance, checkFlags, conversationOf, formatOf, imagesOf, messageOf, turnFlags, wiggumFlags } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { isUnanswered, noteOffline } from '../../offline-notice.ts'
import type { Confiner } from './confined-channel.ts'
import { confinedFlags, confinerOf } from './confined-flags.ts'

const flags = {
  message: { type: 'text', short: 'm', about: 'Run one turn with this message and exit; text on stdin is appended' },
  print: { type: 'text', short: 'p', about: 'The same as -m, and as the message alone' },
  ...turnFlags,
  plain: { type: 'boolean', about: 'For screen readers: no colours, no status line, nothing is drawn twice; as TERM=dumb' },
  showOutput: { type: 'boolean', about: 'With -m: print the output of each call below its line' },
  ...confinedFlags,
  ...checkFlags,
  continueTurn: {
    type: 'boolean',
    about: 'Continue the last turn of the conversation (-c, which is the default, or --resume), which was interrupted or ran into a limit',
  },
  attempts: {
    type: 'whole',
    min: 2,
    max: 8,
    about: 'With -m: answer so many times side by side, each in a copy of the workspace; keep one',
  },
  keep: { type: 'whole', min: 1, max: 8, about: 'With --attempts: keep the changes of this attempt without a question' },
  ...wiggumFlags,
  requireProof: {
    type: 'boolean',
    setting: 'proof_of_done',
    about: 'Send the model back once when its answer claims what the turn does not prove; exit 11 when it claims it again',
  },
  control: {
    type: 'boolean',
    about: 'Work for a control plane: claim its tasks until Ctrl-C, with our own runner (docs/control-plane.md)',
  },
  role: { type: 'text', about: 'With --control: the role that the agent has at the control plane, which is the default' },
} as const satisfies Flags
type AgentFlags = Given<typeof flags>

const wiggumOnly = ['maxIterations', 'until', 'branch', 'protectTests', 'noProtectTests', 'force'] as const

const loadHelp = () => import('../../args/help.ts')
const wiggumCommand = () => import('./wiggum.ts')

export const agent = command({
  flags,
  args: { task: { type: 'text', optional: true, about: 'The message, as with -m' } },
  examples: [
    ['', 'a conversation in the terminal'],
    ['-m "What files are in this project?"', 'one turn'],
    ['-c -m "And the largest?"', 'continue the latest conversation'],
    ['--image shot.png -m "What is wrong here?"', 'the model sees the picture'],
    ['--continue-turn', 'continue the turn that a crash, a stop or a limit ended'],
    ['--require-proof -m "mend the tests"', 'the answer may claim only what the turn proves'],
    ['--attempts 3 -m "make the tests pass"', 'three attempts side by side; compare them and keep one'],
    ['-m "mend the tests" --check \'npm test\'', 'exit code 11 when the check fails after the answer'],
    ['--wiggum --check "npm test" --until 07:00 "Make the tests pass"', 'works until the tests pass (docs/wiggum.md)'],
    ['--control --agent sysadmin', 'works for the control plane; as "control worker --runner own"'],
  ],
  details: async () => (await loadHelp()).limitsHelp(),
  exits: [3, 4, 5, 6, 7, 8, 9, 10, 11, 130],
  advice: question,
  async run(started, flagsGiven, { task }) {
    const [text, second] = [flagsGiven.message, flagsGiven.print, task].filter((each) => each !== undefined)
    if (second !== undefined) throw usageError(`${quote(text)} and ${quote(second)} are two messages; pass one`)
    if (task !== undefined && (await loadHelp()).neighbours.subcommands.includes(task))
      throw usageError(`"agent" has no command ${quote(task)}. ${question([task])}`)
    const given = { ...flagsGiven, message: text }
    const context = given.plain ? { ...started, env: { ...started.env, TERM: 'dumb' } } : started
    if (given.control) return forControlPlane(context, given)
    if (given.image && names(given, ['attempts', 'continueTurn', 'confined', 'wiggum']))
      throw usageError('--image belongs to one message; leave out --wiggum, --attempts, --continue-turn and --confined')
    if (given.wiggum) return (await wiggumCommand()).wiggum(context, given)
    const alone = names(given, wiggumOnly)
    if (alone) throw usageError(`${spelled(alone)} belongs to --wiggum`)
    if (given.continueTurn && given.resume === undefined && existsSync(`${context.home}/wiggum`)) {
      const { continueInterrupted } = await wiggumCommand()
      if (await continueInterrupted(context, given)) return
    }
    if (given.continueTurn && names(given, ['message', 'attempts']))
      throw usageError('--continue-turn continues a turn that has its message already; omit -m and --attempts')
    if (given.role !== undefined) throw usageError('--role belongs to --control')
    const proof = given.requireProof ? 'require' : undefined
    if (proof && names(given, ['attempts', 'confined']))
      throw usageError('--require-proof is for one agent on its own records; leave out --attempts and --confined')
    const settings = { ...given, proof } as const
    const loaded = loadSetup(context, settings)
    const isTalk = formatOf(given) === 'text' && !names(given, ['message', 'continueTurn', 'attempts'])
    const connected = isTalk && isUnanswered(loaded) && (await (await import('../home/onboard.ts')).offerModel(context))
    const setup = await withFoundModels(connected ? loadSetup(connected, settings) : loaded)
    assertCommandLine(setup)
    const profiles = setup.config.defaultAgent === undefined ? undefined : await import('../../../host/setup/agent-profile.ts')
    const activeAgent = await profiles?.activeAgentOf(setup)
    const message = given.continueTurn ? undefined : await messageOf({ message: given.message, advice }, context)
    noteOffline(setup)
    sayWhere(setup)
    const confiner = await confinerOf(given)
    if (confiner && (given.attempts ?? given.continueTurn) !== undefined)
      throw usageError('--confined has no --attempts and no --continue-turn; leave them out')
    const talk: Talk = { setup, flags: given, confiner, activeAgent }
    const isOneTurn = given.attempts === undefined && (message !== undefined || given.continueTurn)
    if (!isOneTurn && names(given, ['check', 'checkRuns', 'checkPass'])) throw usageError('--check belongs to one turn; pass -m "message"')
    if (given.attempts !== undefined) return attempt(talk, message)
    if (given.keep !== undefined) throw usageError('--keep belongs to --attempts')
    if (message === undefined && !given.continueTurn) return converse(talk)
    const run = (renderer?: TurnOptions['renderer']) =>
      oneTurn(talk, message, renderer).catch((error: unknown) => {
        if (!(error instanceof NoConversation) || !given.continueTurn) throw error
        throw usageError(`nothing to continue: ${error.message}`)
      })
    if (given.check) return (await import('../tools/check.ts')).checkTurn(setup, { ...given, check: given.check }, run)
    const exitCode = await run()
    if (exitCode !== 0) throw new CliExit(exitCode)
  },
})

async function forControlPlane(context: CliContext, given: AgentFlags): Promise<void> {
  if (names(given, ['message', 'continue', 'continueTurn', 'resume', 'attempts', 'effort']))
    throw usageError('--control takes its tasks from the control plane; leave out -m, -c, --resume, --effort and --attempts')
  const { workFor } = await import('../control/worker-command.ts')
  const { agent, role, workspace, model, autonomy, approveAllMedium } = given
  await workFor(context, { agent, role, workspace, model, autonomy, approveAllMedium, runner: 'own' })
}

/** Returns the first of these flags that the command line names. */
function names(given: AgentFlags, flags: readonly (keyof AgentFlags)[]): keyof AgentFlags | undefined {
  return flags.find((name) => given[name] !== undefined)
}

/** Words that are not flags are most likely a question. */
function question(words: readonly string[]): string | undefined {
  if (words.length === 0 || words.some((word) => word.startsWith('-'))) return undefined
  return `To ask something: braidclaw agent -m ${pasteable([words.join(' ')])}`
}

const advice = 'pass -m "message", pipe text in, or run it in a terminal for a conversation'

type Talk = {
  readonly setup: CliSetup
  readonly flags: AgentFlags
  readonly confiner: Confiner | undefined
  readonly activeAgent: ActiveAgent | undefined
}

async function attempt({ setup, flags }: Talk, prompt: string | undefined): Promise<void> {
  const { attempts: count = 2, keep, continue: latest, resume } = flags
  if (prompt === undefined) throw usageError('--attempts needs a message: -m "…"')
  if (latest || resume !== undefined) throw usageError('--attempts begins new conversations; leave out -c and --resume')
  const format = formatOf(flags)
  if (format === 'stream-json') throw usageError('--attempts has no stream; use --json')
  const { compareAttempts } = await import('./attempts.ts')
  const setupIn = (workspace: string) => loadSetup(setup.context, { ...flags, workspace })
  await compareAttempts({ setup, prompt, count, keep, json: format === 'json', setupIn })
}

/** Runs one turn; without a prompt it continues the last turn. */
async function oneTurn({ setup, flags, confiner, activeAgent }: Talk, prompt?: string, renderer?: TurnOptions['renderer']) {
  const ask = terminalPrompt(setup.context)
  const latest = flags.continue || (flags.continueTurn && flags.resume === undefined)
  const which = conversationOf({ ...flags, continue: latest }, activeAgent?.session)
  const format = formatOf(flags)
  const pictures = await imagesOf(setup, flags.image ?? [])
  const options = { channel: 'cli', ...activeAgent?.request, ...acceptance(flags) }
  const shown = { prompt, words: flags.message, pictures, sayUsage: true, renderer, ask, showOutput: flags.showOutput }
  const channel = createQuestionChannel({ setup, which, options, format, ...shown })
  await runChannel(setup, confiner?.around(channel, setup) ?? channel)
  return channel.exitCode() ?? exitCodes.error
}

async function converse({ setup, flags, confiner, activeAgent }: Talk): Promise<void> {
  const { createTerminalChannel } = await import('../../../channels/terminal/conversation-loop.ts')
  if (formatOf(flags) !== 'text') throw usageError('a conversation is text; for JSON pass a message with -m')
  const { workspace, effort, agent, autonomy, maxTurns, approveAllMedium, plain } = flags
  const settings = { workspace, effort, agent, autonomy, maxTurns, approveAllMedium }
  const conversation = conversationOf(flags, activeAgent?.session)
  const pictures = await imagesOf(setup, flags.image ?? [])
  const channel = createTerminalChannel({ setup, plain, settings, conversation, ...acceptance(flags), activeAgent, pictures })
  await runChannel(setup, confiner?.around(channel, setup) ?? channel)
}
