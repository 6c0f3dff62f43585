/** What every command gets: streams, environment, home. Built once, without touching `process.stdout`, which costs 8 ms. */

import { readlinkSync } from 'node:fs'
import { openDescriptor } from '../channels/descriptor.ts'
import { createPrinter, type Printed, type Printer, wordsOf } from '../channels/printer.ts'
import { createStatusLine } from '../channels/status-line.ts'
import { columnsOfStderr } from '../channels/tty.ts'
import { createRedactor, type Redactor } from '../security/redact.ts'
import { weaknessOf } from '../security/secret-strength.ts'
import { silence } from './exit.ts'
import { openStdout } from './stdout.ts'
import type { CliContext, Environment, Wake } from './world.ts'

export function createContext(given: Environment, wake: Wake): CliContext {
  const messagesOut = openDescriptor(2)
  const status = createStatusLine({ put: messagesOut.put, columns: columnsOfStderr, now: Date.now })
  const stdout = openStdout(status)
  const userHome = userHomeOf(given)
  const env: Environment = { ...given, HOME: userHome }
  const moved = env.BRAIDCLAW_HOME || env.SHELLCLAW_HOME
  const home = moved ? absolute(moved, userHome) : `${userHome.endsWith('/') ? userHome.slice(0, -1) : userHome}/.braidclaw`
  const redactor = createRedactor()
  for (const [name, value] of Object.entries(env)) if (value && isSecret(name) && !weaknessOf(value)) redactor.register(value, name)
  return {
    process: { stdout, stderr: messages(env, redactor, createPrinter(2, status, messagesOut)), env, exitCode: null },
    env,
    redactor,
    cwd: currentFolder(),
    home,
    status,
    outputClosed: stdout.closed,
    outputFailure: stdout.failure,
    wake,
  }
}

/** With BRAIDCLAW_LOG=json whatever goes to stderr is a JSON line, also what is meant for people. */
function messages({ BRAIDCLAW_LOG: wish = '' }: Environment, redactor: Redactor, printer: Printer): Printer {
  const json = wish.startsWith('json')
  const write = (text: Printed) => {
    if (text === `${silence}\n`) return
    const clean =
      typeof text === 'string' ? redactor.text(text) : text.map((piece) => (typeof piece === 'string' ? redactor.text(piece) : piece))
    printer.write(json ? jsonLines(wordsOf(clean)) : clean)
  }
  return { ...printer, write }
}

function jsonLines(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map(jsonLine).join('')
}

function jsonLine(line: string): string {
  if (line.startsWith('{"ts":')) return `${line}\n`
  const level = line.startsWith('error: ') ? 'error' : line.startsWith('warning: ') ? 'warn' : 'info'
  return `${JSON.stringify({ ts: new Date().toISOString(), level, event: 'message', text: line })}\n`
}

function isSecret(name: string): boolean {
  return secretEndings.some((ending) => name.endsWith(ending))
}

const secretEndings = ['_API_KEY', '_ACCESS_KEY', '_TOKEN', '_SECRET', '_PASSWORD']

/** A folder that was removed under us is called "… (deleted)" by the system: who needs it is told that it is not there. */
function currentFolder(): string {
  try {
    return process.cwd()
  } catch {
    return readlinkSync('/proc/self/cwd')
  }
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
