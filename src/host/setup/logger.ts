/** Writes the log to stderr: text by default, JSON lines with BRAIDCLAW_LOG=json; every line passes the redactor. */

import type { Log } from '../../runtime/port.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const

export type LogOptions = {
  /** BRAIDCLAW_LOG: `json`, a level, `off`, or `json:LEVEL`. JSON alone means from `info` up. */
  readonly request: string | undefined
  /** log.level of the configuration; BRAIDCLAW_LOG overrides it. */
  readonly level: (typeof levels)[number]
  readonly write: (line: string) => void
  readonly redact: (text: string) => string
  readonly now: () => number
}

/** Creates the log. Events keep stable names ("tool requested"); fields follow. A JSON line is {"ts","level","event",…fields}. */
export function createLog({ request = '', level, write, redact, now }: LogOptions): Log {
  const [format, named] = request.startsWith('json') ? (['json', request.slice(5) || 'info'] as const) : (['text', request] as const)
  if (named === 'off') return () => {}
  const wanted = levels.map(String).indexOf(named)
  const lowest = wanted >= 0 ? wanted : levels.indexOf(level)
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
