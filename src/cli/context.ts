/** What every command gets: streams, environment, home. Built once, without touching `process.stdout`, which costs 8 ms. */

import { createSink } from '../channels/wire.ts'
import { createRedactor, type Redactor } from '../security/redact.ts'
import { silence } from './exit.ts'

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
  /** Knows the keys in the environment from the start; everything on stderr passes it, and whatever is stored. */
  readonly redactor: Redactor
  /** The reader of stdout went away: stop writing, stop working. */
  readonly outputClosed: () => boolean
  /** Why stdout could not be written, when it was not that its reader went away. */
  readonly outputFailure: () => string | undefined
}

export function createContext(given: Environment): CliContext {
  const stdout = createSink(1)
  const userHome = userHomeOf(given)
  const env: Environment = { ...given, HOME: userHome }
  const home = env.BRAIDCLAW_HOME ? absolute(env.BRAIDCLAW_HOME, userHome) : `${userHome.replace(/\/$/, '')}/.braidclaw`
  const redactor = createRedactor()
  for (const [name, value] of Object.entries(env)) if (value && isSecret(name)) redactor.register(value, name)
  return {
    process: { stdout, stderr: messages(env, redactor), env, exitCode: null },
    env,
    redactor,
    cwd: process.cwd(),
    home,
    outputClosed: stdout.closed,
    outputFailure: stdout.failure,
  }
}

/** With BRAIDCLAW_LOG=json whatever goes to stderr is a JSON line, also what is meant for people. */
function messages({ BRAIDCLAW_LOG: wish = '' }: Environment, redactor: Redactor): { write(text: string): void } {
  const sink = createSink(2)
  const write = (text: string) => sink.write(redactor.text(text))
  const lines = (text: string) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map(jsonLine)
      .join('')
  return { write: (text) => (text === `${silence}\n` ? undefined : write(wish.startsWith('json') ? lines(text) : text)) }
}

function jsonLine(line: string): string {
  if (line.startsWith('{"ts":')) return `${line}\n`
  const level = line.startsWith('error: ') ? 'error' : line.startsWith('warning: ') ? 'warn' : 'info'
  return `${JSON.stringify({ ts: new Date().toISOString(), level, event: 'message', text: line })}\n`
}

function isSecret(name: string): boolean {
  return /(_API_KEY|_ACCESS_KEY|_TOKEN|_SECRET|_PASSWORD)$/.test(name)
}

/** Without HOME (cron, a bare service) the user database knows. */
function userHomeOf({ HOME = '' }: Environment): string {
  if (HOME.startsWith('/')) return HOME
  return process.getBuiltinModule('node:os').userInfo().homedir || '/'
}

function absolute(path: string, userHome: string): string {
  if (path === '~' || path.startsWith('~/')) return `${userHome}${path.slice(1)}`
  return process.getBuiltinModule('node:path').resolve(path)
}
