/**
 * Builds the host's context from its process (the environment with the keys that `onboard` stored, the home folder, the redactor of
 * secrets), and its log.
 */

import { readlinkSync } from 'node:fs'
import { readKeys } from '../../config/keys-file.ts'
import { attempt } from '../../kit/errors.ts'
import type { Log } from '../../runtime/port.ts'
import { createRedactor } from '../../security/redaction/redact.ts'
import { weaknessOf } from '../../security/redaction/secret-forms.ts'
import type { Environment, HostContext } from '../api.ts'
import { FailureError } from '../failure.ts'

/** It does not call `say` itself; log lines come later. @throws FailureError when no variable says where our home is */
export function createHostContext({ env: given, channels, say }: Pick<HostContext, 'env' | 'channels' | 'say'>): HostContext {
  const userHome = userHomeOf(given)
  const moved = given.BRAIDCLAW_HOME || given.SHELLCLAW_HOME
  const home = moved ? absolute(moved, userHome) : `${userHome.endsWith('/') ? userHome.slice(0, -1) : userHome}/.braidclaw`
  const keyFile = readKeys(`${home}/keys.env`)
  const env: Environment = { ...given, ...missingIn(given, keyFile.keys), HOME: userHome }
  const redactor = createRedactor()
  for (const [name, value] of Object.entries(env))
    if (value && (secretEndings.some((ending) => name.endsWith(ending)) || name in keyFile.keys) && !weaknessOf(value))
      redactor.register(value, name)
  return { env, channels, redactor, cwd: currentFolder(), home, say, ...(keyFile.problem ? { keysProblem: keyFile.problem } : {}) }
}

/** A variable of the environment has precedence unless it is empty. */
function missingIn(given: Environment, keys: { readonly [name: string]: string }): Environment {
  return Object.fromEntries(Object.entries(keys).filter(([name]) => !given[name]))
}

const secretEndings = ['_API_KEY', '_ACCESS_KEY', '_TOKEN', '_SECRET', '_PASSWORD']

/** The kernel appends " (deleted)" to the name of a removed folder; code that needs the folder then reports that it does not exist. */
function currentFolder(): string {
  return attempt(() => process.cwd()) ?? readlinkSync('/proc/self/cwd')
}

/**
 * Returns what `~` means. A caller that unsets HOME wants the real home left alone, so the user database is read only when BRAIDCLAW_HOME
 * names our home; forbidden paths such as ~/.ssh then keep their meaning.
 */
function userHomeOf({ HOME = '', BRAIDCLAW_HOME, SHELLCLAW_HOME }: Environment): string {
  if (HOME.startsWith('/')) return HOME
  if (!BRAIDCLAW_HOME && !SHELLCLAW_HOME) {
    const what = HOME === '' ? 'HOME is not set' : `HOME is not an absolute path: ${JSON.stringify(HOME)}`
    throw new FailureError('error', `${what}; set HOME or BRAIDCLAW_HOME`)
  }
  return process.getBuiltinModule('node:os').userInfo().homedir || '/'
}

function absolute(path: string, userHome: string): string {
  if (path === '~' || path.startsWith('~/')) return `${userHome}${path.slice(1)}`
  return process.getBuiltinModule('node:path').resolve(path)
}

const levels = ['debug', 'info', 'warn', 'error'] as const

type LogOptions = {
  /** BRAIDCLAW_LOG: `json`, a level, `off`, or `json:LEVEL`. JSON alone means from `info` up. */
  readonly request: string | undefined
  /** log.level of the configuration; BRAIDCLAW_LOG overrides it. */
  readonly level: (typeof levels)[number]
  readonly write: (line: string) => void
  readonly redact: (text: string) => string
  readonly now: () => number
}

/**
 * Creates the log on stderr: text by default, JSON lines with BRAIDCLAW_LOG=json; every line passes the redactor. Events keep stable names
 * ("tool requested"); fields follow. A JSON line is {"ts","level","event",…fields}.
 */
export function createLog({ request = '', level, write, redact, now }: LogOptions): Log {
  const [format, named] = request.startsWith('json') ? (['json', request.slice(5) || 'info'] as const) : (['text', request] as const)
  if (named === 'off') return () => {}
  const levelIndex = levels.map(String).indexOf(named)
  const lowest = levelIndex >= 0 ? levelIndex : levels.indexOf(level)
  return (at, event, fields = {}) => {
    if (levels.indexOf(at) < lowest) return
    const line =
      format === 'json'
        ? JSON.stringify({ ts: new Date(now()).toISOString(), level: at, ...fields, event })
        : `${at}: ${event}${pairs(fields)}`
    write(`${redact(line)}\n`)
  }
}

/** Formats ` key=value`; a value with characters that could be misread, control characters included, is quoted as JSON. */
function pairs(fields: { readonly [key: string]: unknown }): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${typeof value === 'string' && /^[\w./:@~+-]+$/.test(value) ? value : JSON.stringify(value)}`)
    .join('')
}
