/** Runs a command line and turns the result into an exit code. */

import { version } from '../../package.json'
import type { CliContext } from '../channels/terminal/context.ts'
import { createPrinter } from '../channels/terminal/printer.ts'
import { stdinKind } from '../channels/terminal/tty.ts'
import type { Runnable } from './args/command.ts'
import { mayBeForeign, resolveCommand } from './args/resolve-command.ts'
import { scan } from './args/scan.ts'
import { turnCommands } from './commands/turn-commands.ts'
import { createContext } from './context.ts'
import { exitCodes, exitOf } from './exit.ts'

/** Runs the command line and ends the process. */
export async function start(words: readonly string[]): Promise<never> {
  if (words[0] === '__landlock') (await import('../sandbox/landlock/landlock-launch.ts')).runLandlocked(words.slice(1))
  const context = contextFor(words)
  const code = await run(context, words)
  process.exit(outputError(context) ?? code)
}

/** Help also works without HOME. */
function contextFor(words: readonly string[]): CliContext {
  const asksForHelp =
    words.length > 0 && words.some((word) => ['help', '--help', '-h', '--version', 'completion', '__complete'].includes(word))
  try {
    return createContext(process.env)
  } catch (error) {
    if (asksForHelp) return createContext({ ...process.env, HOME: '/' })
    const { code, message } = exitOf(error)
    createPrinter(2).write(`${message}\n`)
    return process.exit(code)
  }
}

/** Loads the texts that a turn does not need. */
const loadHelp = () => import('./args/help.ts')

async function run(context: CliContext, words: readonly string[]): Promise<number> {
  const { stdout, stderr } = context.process
  const isTurn = turnCommands.some(({ name }) => name === words[0])
  const commands = isTurn ? turnCommands : (await import('./commands/list.ts')).commands
  if (words[0] === '__complete') {
    await (await import('./args/complete.ts')).complete(context, commands, words[1] ?? 'bash', words.slice(2))
    return 0
  }
  if (words[0] === '__config') {
    stdout.write(await (await import('../config/layers/run-program.ts')).runProgram())
    return 0
  }
  if (words[0] === '__pdf') {
    const [{ pdfText }, library] = await Promise.all([import('../tools/pdf-text.ts'), import('unpdf')])
    stdout.write(await pdfText(library, words[1] ?? ''))
    return 0
  }
  if (words[0] === '__stories') {
    stdout.write(await (await import('../host/checks/stories/bundle-stories.ts')).bundleStories())
    return 0
  }
  const { filterFlags } = isTurn ? { filterFlags: {} } : await import('./args/filter-flags.ts')
  const foreign = mayBeForeign(commands, filterFlags, words) ? { neighbours: (await loadHelp()).neighbours } : {}
  const meaning = resolveCommand(commands, filterFlags, words, { stdin: stdinKind(), ...foreign })
  if (meaning.kind === 'run') return runCommand(context, meaning.row, meaning.words)
  if (words.length === 0 && stdinKind() === 'terminal') {
    const connected = await (await import('./commands/home/onboard.ts')).offerModel(context)
    if (connected) return run(connected, ['agent'])
  }
  if (meaning.kind === 'doubt') stderr.write(meaning.message)
  else if (meaning.kind === 'version') stdout.write(`${version}\n`)
  else {
    const { allCommands, firstPage, helpOf } = await loadHelp()
    stdout.write(meaning.row ? await helpOf(commands, meaning.row) : meaning.all ? await allCommands(commands) : firstPage())
  }
  return meaning.kind === 'doubt' || words.length === 0 ? exitCodes.usage : 0
}

/** Runs the command only when the whole line is valid. */
async function runCommand(context: CliContext, { name, load }: Runnable, words: readonly string[]): Promise<number> {
  const { stderr } = context.process
  try {
    const command = await load()
    const { faults, flags, args } = scan(command, words)
    if (faults.length > 0) {
      const advice = command.advice?.(words)
      const { withHint } = await loadHelp()
      stderr.write(
        `${faults.map((fault) => `error: ${withHint(command, fault)}\n`).join('')}See: braidclaw ${name} --help${advice ? `. ${advice}` : ''}\n`,
      )
      return command.usageExit ?? exitCodes.usage
    }
    if (flags.quiet === true) context.quiet()
    await command.run(context, flags, args)
    return 0
  } catch (error) {
    const { code, message } = exitOf(error)
    if (message) stderr.write(`${message}\n`)
    return code
  }
}

/** Returns an exit code when the answer could not be written, because that is a failure whatever the answer was. */
function outputError({ outputFailure, process: { stderr } }: CliContext): number | undefined {
  const code = outputFailure()
  if (code === undefined) return undefined
  const why = code === 'EBADF' ? 'is not open for writing; leave it open' : `cannot be written (${code}); free some space`
  stderr.write(`error: stdout ${why}, or send it elsewhere\n`)
  return 1
}
