/** Reads ids, names, JSON, times and numbers of tokens as people type them, and says what is wrong with one before anything is sent. */

import type { Environment } from '../../../../host/api.ts'
import { readTiming, readZone } from '../../../../host/schedules/read-timing.ts'
import { errorText } from '../../../../kit/errors.ts'
import { quote } from '../../../../kit/text.ts'
import { usageError } from '../../../exit.ts'

type IdKind = 'task' | 'run' | 'approval'

const kinds = {
  task: { prefix: 'TASK', list: 'braidclaw control task list' },
  run: { prefix: 'RUN', list: 'braidclaw control run list' },
  approval: { prefix: 'APPR', list: 'braidclaw control approvals' },
} as const satisfies { readonly [K in IdKind]: { readonly prefix: string; readonly list: string } }

/** `TASK-001`, `task-1` and `1` name the same task. @throws CliExit 2 unless it is an id */
export function idOf(kind: IdKind, text: string): string {
  const { prefix, list } = kinds[kind]
  const [, number] = new RegExp(`^(?:${prefix}-)?0*(\\d{1,15})$`, 'i').exec(text) ?? []
  if (number !== undefined) return `${prefix}-${number.padStart(3, '0')}`
  throw usageError(
    `${quote(text)} is not the id of ${kind === 'approval' ? 'an' : 'a'} ${kind}; one looks like ${prefix}-001. See: ${list}`,
  )
}

/** Checks the name of an agent, role, label or schedule. @throws CliExit 2 */
export function nameOf(what: string, text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text
  throw usageError(`${what} ${quote(text)}: a name has 1 to 64 letters, digits, ".", "_" or "-", and begins with a letter or digit`)
}

/** @throws CliExit 2 unless it is a JSON object */
export function jsonObjectOf(flag: string, text: string): Record<string, unknown> {
  const value = jsonOf(flag, text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw usageError(`${flag}: ${JSON.stringify(text)} is not a JSON object; write one like '{"jail_name":"clawdie-db"}'`)
}

/** @throws CliExit 2 unless it is JSON */
export function jsonOf(flag: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageError(`${flag}: ${JSON.stringify(text)} is not JSON: ${errorText(error).replace(/^JSON Parse error: /, '')}`)
  }
}

/** Reads `100000`, `100_000`, `100k`, `2.5M`; returns null for `none`. @throws CliExit 2 */
export function tokensOf(flag: string, text: string): number | null {
  if (text === 'none') return null
  const [, digits, unit = ''] = /^(\d[\d_,]*(?:\.\d+)?)([kKmM]?)$/.exec(text) ?? []
  const value = Number((digits ?? '').replaceAll(/[_,]/g, '')) * (unit === '' ? 1 : unit.toLowerCase() === 'k' ? 1e3 : 1e6)
  if (digits === undefined || !Number.isSafeInteger(value) || value > 1e12)
    throw usageError(
      `${flag}: ${JSON.stringify(text)} is not a number of tokens; write one like 5000, 100k or 2M (at most 1,000,000,000,000), or none`,
    )
  return value
}

/** Reads `NAME=100k`. @throws CliExit 2 */
export function namedTokens(flag: string, text: string): readonly [name: string, tokens: number | null] {
  const at = text.lastIndexOf('=')
  const name = text.slice(0, Math.max(0, at))
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) throw usageError(`${flag}: ${JSON.stringify(text)} is not like sysadmin=5000`)
  return [name, tokensOf(`${flag} ${name}`, text.slice(at + 1))]
}

/** Returns a time as ISO 8601 in UTC. @throws FailureError 2 */
export function timeOf(
  text: string,
  { zone, now, env }: { readonly zone: string | undefined; readonly now: number; readonly env: Environment },
): string {
  const timing = readTiming({ at: text }, { now, zone: zoneOf(zone, env) })
  if (timing.kind !== 'at') throw usageError(`--at "${text}" is not a time`)
  return new Date(timing.at).toISOString()
}

/** Returns this time zone, else TZ, else that of the system. @throws FailureError 2 */
export function zoneOf(zone: string | undefined, env: Environment, flag?: string): string {
  return readZone(zone ?? env.TZ ?? Intl.DateTimeFormat().resolvedOptions().timeZone, flag)
}
