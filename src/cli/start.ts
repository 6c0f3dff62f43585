/** From the command line to an exit code. */

import { version } from '../../package.json'
import type { AgentFlags } from './routes/types.ts'
import type { CliContext, Wake } from './world.ts'

/** Ends the process. `--version` alone answers before anything else is loaded. */
export async function start(words: readonly string[], wake: Wake): Promise<never> {
  if (words.length === 1 && (words[0] === '--version' || words[0] === '-v')) {
    console.log(version)
    process.exit(0)
  }
  if (words[0] === '__landlock') (await import('../sandbox/landlock-launch.ts')).runLandlocked(words.slice(1))
  const [{ createContext }, { plainFlags }] = await Promise.all([import('./context.ts'), import('./plain.ts')])
  const context = createContext(process.env, wake)
  if (words[0] === '__complete') {
    await (await import('./complete.ts')).complete(context, words[1] ?? 'bash', words.slice(2))
    process.exit(0)
  }
  const flags = plainFlags(words)
  const code = flags ? await ask(context, flags) : await parse(context, words)
  process.exit(unwritten(context) ?? code)
}

/** Straight to the command; what it throws ends as it would behind the parser. */
async function ask(context: CliContext, flags: AgentFlags): Promise<number> {
  const { agent } = await import('./commands/agent.ts')
  try {
    await agent.call(context, flags)
    return 0
  } catch (error) {
    const { code, message } = (await import('./trouble.ts')).exitOf(error)
    if (message) context.process.stderr.write(`${message}\n`)
    return code
  }
}

async function parse(context: CliContext, words: readonly string[]): Promise<number> {
  const [{ run }, { createApp }] = await Promise.all([import('@stricli/core'), import('./app.ts')])
  await run(createApp(words), asked(words), context)
  return exitCode(Number(context.process.exitCode ?? 0), words.length)
}

/** `help`, `help memory` and no words at all are what people try first. */
function asked(words: readonly string[]): readonly string[] {
  if (words.length === 0) return ['--help']
  return words[0] === 'help' ? [...words.slice(1), '--help'] : words
}

/** An answer that did not arrive is no success, whatever was answered. */
function unwritten({ outputFailure, process: { stderr } }: CliContext): number | undefined {
  const code = outputFailure()
  if (code === undefined || code === 'EBADF') return undefined
  stderr.write(`error: stdout cannot be written (${code}); free some space or send it elsewhere\n`)
  return 1
}

/** The argument parser says −4 and −5 for a wrong command line; other negatives are its own failures. */
function exitCode(code: number, words: number): number {
  if (code === -4 || code === -5 || words === 0) return 2
  return code < 0 ? 1 : code
}
