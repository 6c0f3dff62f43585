/** From the command line to an exit code. */

import { version } from '../../package.json'
import type { CliContext, Wake } from './world.ts'

/** Ends the process. `--version` alone answers before anything else is loaded. */
export async function start(words: readonly string[], wake: Wake): Promise<never> {
  if (words.length === 1 && (words[0] === '--version' || words[0] === '-v')) {
    console.log(version)
    process.exit(0)
  }
  const [{ run }, { agentApp }, { createContext }] = await Promise.all([
    import('@stricli/core'),
    import('./application.ts'),
    import('./context.ts'),
  ])
  const context = createContext(process.env, wake)
  if (words[0] === '__complete') {
    await (await import('./complete.ts')).complete(context, words[1] ?? 'bash', words.slice(2))
    process.exit(0)
  }
  const app = words[0] === 'agent' ? agentApp(words) : (await import('./app.ts')).createApp(words)
  await run(app, asked(words), context)
  process.exit(unwritten(context) ?? exitCode(Number(context.process.exitCode ?? 0), words.length))
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
