/** From the command line to an exit code. */

import type { CliContext } from '../channels/terminal/context.ts'
import { createPrinter } from '../channels/terminal/printer.ts'
import { agent } from './commands/talk/agent.ts'
import { createContext } from './context.ts'
import { isBare, plainFlags, plainQuestion, type Question } from './plain.ts'
import type { AgentFlags } from './routes/types.ts'
import { exitOf } from './trouble.ts'

/** Ends the process. What every turn runs is imported by name, so that the executable holds it as one piece; commands load their own. */
export async function start(words: readonly string[]): Promise<never> {
  if (words[0] === '__landlock') (await import('../sandbox/landlock/landlock-launch.ts')).runLandlocked(words.slice(1))
  const context = contextFor(words)
  if (words[0] === '__complete') {
    await (await import('./complete.ts')).complete(context, words[1] ?? 'bash', words.slice(2))
    process.exit(0)
  }
  const flags = plainFlags(words)
  const question = flags ? undefined : await questionIn(words)
  const code = flags ? await ask(context, flags) : question ? await answer(context, question) : await parse(context, words)
  process.exit(unwritten(context) ?? code)
}

/** Help is for everybody, also for who has no HOME. */
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

/** A question that nobody could take for a command. Without any word it is what stdin carries. */
async function questionIn(words: readonly string[]): Promise<Question | undefined> {
  if (words.length === 0) return (await import('../channels/terminal/tty.ts')).stdinKind() === 'data' ? nothingSaid : undefined
  const question = isBare(words[0] ?? '') ? undefined : plainQuestion(words)
  const doubtful = question?.words.length === 1 && !question.escaped && isBare(question.words[0] ?? '')
  return doubtful ? undefined : question
}

const nothingSaid: Question = { flags: {}, words: [], escaped: false }

async function ask(context: CliContext, flags: AgentFlags): Promise<number> {
  return straight(context, () => agent.call(context, flags))
}

async function answer(context: CliContext, { flags, words }: Question): Promise<number> {
  const { filter } = await import('./commands/talk/filter.ts')
  return straight(context, () => filter.call(context, flags, ...words))
}

/** To the command without the parser; what it throws ends as it would behind it. */
async function straight(context: CliContext, command: () => Promise<void>): Promise<number> {
  try {
    await command()
    return 0
  } catch (error) {
    const { code, message } = exitOf(error)
    if (message) context.process.stderr.write(`${message}\n`)
    return code
  }
}

async function parse(context: CliContext, words: readonly string[]): Promise<number> {
  // Whatever is no plain turn may have much to do; there compiling pays (scripts/compile.ts makes the start reluctant to).
  Bun.unsafe.setJITPolicy(1)
  const [{ run }, { commands, createApp }, { meaningOf }, { stdinKind }] = await Promise.all([
    import('@stricli/core'),
    import('./args/parse-args.ts'),
    import('./args/resolve-command.ts'),
    import('../channels/terminal/tty.ts'),
  ])
  const meaning = meaningOf(words, commands(), stdinKind())
  if (meaning.kind === 'doubt') {
    context.process.stderr.write(meaning.message)
    return 2
  }
  await run(createApp(meaning.words), meaning.words, context)
  return exitCode(Number(context.process.exitCode ?? 0), words)
}

/** An answer that did not arrive is no success, whatever was answered. */
function unwritten({ outputFailure, process: { stderr } }: CliContext): number | undefined {
  const code = outputFailure()
  if (code === undefined) return undefined
  const why = code === 'EBADF' ? 'is not open for writing; leave it open' : `cannot be written (${code}); free some space`
  stderr.write(`error: stdout ${why}, or send it elsewhere\n`)
  return 1
}

/** The argument parser says −4 and −5 for a wrong command line; other negatives are its own failures. */
function exitCode(code: number, words: readonly string[]): number {
  // By its contract 2 is a loop with too many rounds.
  if (code === -4 || code === -5) return words[0] === 'tool' && words[1] === 'loop' ? 1 : 2
  if (words.length === 0) return 2
  return code < 0 ? 1 : code
}
