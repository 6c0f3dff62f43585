/** What every command gets: streams, environment, home. Built once, without touching `process.stdout`, which costs 8 ms. */

import { createSink } from '../channels/wire.ts'

export type Environment = Readonly<Partial<Record<string, string>>>

export type CliContext = {
  readonly process: {
    readonly stdout: { write(text: string): void }
    readonly stderr: { write(text: string): void }
    readonly env: Environment
    exitCode?: number | string | null
  }
  readonly env: Environment
  readonly cwd: string
  /** BRAIDCLAW_HOME, or ~/.braidclaw: everything we keep. */
  readonly home: string
  /** The reader of stdout went away: stop writing, stop working. */
  readonly outputClosed: () => boolean
}

export function createContext(env: Environment): CliContext {
  const stdout = createSink(1)
  const userHome = env.HOME || '/'
  const given = env.BRAIDCLAW_HOME
  const home = given ? absolute(given, userHome) : `${userHome.replace(/\/$/, '')}/.braidclaw`
  return {
    process: { stdout, stderr: createSink(2), env, exitCode: null },
    env,
    cwd: process.cwd(),
    home,
    outputClosed: stdout.closed,
  }
}

function absolute(path: string, userHome: string): string {
  if (path === '~' || path.startsWith('~/')) return `${userHome}${path.slice(1)}`
  return path.startsWith('/') ? path.replace(/\/+$/, '') || '/' : `${process.cwd()}/${path}`
}
