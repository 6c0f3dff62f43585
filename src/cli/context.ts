/** What every command gets: streams, environment, home. Built once, without touching `process.stdout`, which costs 8 ms. */

import { readlinkSync } from 'node:fs'
import { openDescriptor } from '../channels/descriptor.ts'
import { createPrinter, type Printed, type Printer, wordsOf } from '../channels/printer.ts'
import { createStatusLine } from '../channels/status-line.ts'
import { columnsOfStderr } from '../channels/tty.ts'
import { readKeys } from '../config/keys-file.ts'
import { createRedactor, type Redactor } from '../security/redact.ts'
import { weaknessOf } from '../security/secret-strength.ts'
import { CliExit, exitCodes, silence } from './exit.ts'
import { openStdout } from './stdout.ts'
import type { CliContext, Environment, Wake } from './world.ts'

/** @throws CliExit 1 when nothing says where our records are */
export function createContext(given: Environment, wake: Wake): CliContext {
  const messagesOut = openDescriptor(2)
  const status = createStatusLine({ put: messagesOut.put, columns: columnsOfStderr, now: Date.now })
  const stdout = openStdout(status)
  const userHome = userHomeOf(given)
  const moved = given.BRAIDCLAW_HOME || given.SHELLCLAW_HOME
  const home = moved ? absolute(moved, userHome) : `${userHome.endsWith('/') ? userHome.slice(0, -1) : userHome}/.braidclaw`
  const kept = readKeys(`${home}/keys.env`)
  const env: Environment = { ...given, ...missingIn(given, kept.keys), HOME: userHome }
  const redactor = createRedactor()
  for (const [name, value] of Object.entries(env))
    if (value && (isSecret(name) || name in kept.keys) && !weaknessOf(value)) redactor.register(value, name)
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
    ...(kept.problem ? { keysProblem: kept.problem } : {}),
  }
}

/** A variable of the environment counts, unless it is empty. */
function missingIn(given: Environment, keys: { readonly [name: string]: string }): Environment {
  return Object.fromEntries(Object.entries(keys).filter(([name]) => !given[name]))
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

/**
 * What `~` means. Whoever takes HOME away wants the real home left alone: the user database is asked only when BRAIDCLAW_HOME says where our
 * records are, so that forbidden paths such as ~/.ssh keep their meaning.
 */
function userHomeOf({ HOME = '', BRAIDCLAW_HOME, SHELLCLAW_HOME }: Environment): string {
  if (HOME.startsWith('/')) return HOME
  if (!BRAIDCLAW_HOME && !SHELLCLAW_HOME) {
    const what = HOME === '' ? 'HOME is not set' : `HOME is no absolute path: ${JSON.stringify(HOME)}`
    throw new CliExit(exitCodes.error, `error: ${what}; set HOME or BRAIDCLAW_HOME`)
  }
  return process.getBuiltinModule('node:os').userInfo().homedir || '/'
}

function absolute(path: string, userHome: string): string {
  if (path === '~' || path.startsWith('~/')) return `${userHome}${path.slice(1)}`
  return process.getBuiltinModule('node:path').resolve(path)
}
