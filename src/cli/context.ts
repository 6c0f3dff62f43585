/** Builds the context of every command once: streams, environment, home. It does not touch `process.stdout`, which costs 8 ms. */

import { version } from '../../package.json'
import { channelRows } from '../channels/list.ts'
import type { CliContext } from '../channels/terminal/context.ts'
import { openDescriptor } from '../channels/terminal/descriptor.ts'
import { createPrinter, openStdout, type Printed, type Printer, wordsOf } from '../channels/terminal/printer.ts'
import { createStatusLine } from '../channels/terminal/status-line.ts'
import { columnsOfStderr } from '../channels/terminal/tty.ts'
import type { Environment } from '../host/api.ts'
import { createHostContext } from '../host/setup/context.ts'
import type { Redactor } from '../security/redaction/redact.ts'
import { exitCodes, exitOf } from './exit.ts'

/** @throws FailureError when no variable says where our home is */
export function createContext(given: Environment): CliContext {
  const messagesOut = openDescriptor(2)
  const status = createStatusLine({ put: messagesOut.put, columns: columnsOfStderr, now: Date.now })
  const stdout = openStdout(status)
  const host = createHostContext({ env: given, channels: channelRows, say: (text) => stderr.write(text) })
  const { env, redactor } = host
  const state = { isQuiet: false }
  const all = messages(env, redactor, createPrinter(2, status, messagesOut))
  const isLeftOut = (text: Printed) => state.isQuiet && wordsOf(text).startsWith('note: ')
  const stderr = { ...all, write: (text: Printed) => (isLeftOut(text) ? undefined : all.write(text)) }
  return {
    ...host,
    version,
    process: { stdout, stderr, env },
    exitCodeOf: (code) => exitCodes[code],
    explain: (error) => exitOf(error).message,
    status,
    quiet: () => void Object.assign(state, { isQuiet: true }),
    outputClosed: stdout.closed,
    outputFailure: stdout.failure,
  }
}

/** With BRAIDCLAW_LOG=json every line on stderr is a JSON line, also messages for people. */
export function messages({ BRAIDCLAW_LOG: request = '' }: Environment, redactor: Redactor, printer: Printer): Printer {
  const json = request.startsWith('json')
  const write = (text: Printed) => {
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
