/** Reads ids and names as people type them, and says what is wrong with one before anything is sent. */

import { quote } from '../../../../kit/text.ts'
import { usageError } from '../../../exit.ts'

type Kind = 'task' | 'run' | 'approval'

const kinds = {
  task: { prefix: 'TASK', list: 'braidclaw control task list' },
  run: { prefix: 'RUN', list: 'braidclaw control run list' },
  approval: { prefix: 'APPR', list: 'braidclaw control approvals' },
} as const satisfies { readonly [K in Kind]: { readonly prefix: string; readonly list: string } }

/** `TASK-001`, `task-1` and `1` name the same task. @throws CliExit 2 unless it is an id */
export function idOf(kind: Kind, text: string): string {
  const { prefix, list } = kinds[kind]
  const [, number] = new RegExp(`^(?:${prefix}-)?0*(\\d{1,15})$`, 'i').exec(text) ?? []
  if (number !== undefined) return `${prefix}-${number.padStart(3, '0')}`
  throw usageError(`${quote(text)} is no id of ${kind === 'approval' ? 'an' : 'a'} ${kind}; one looks like ${prefix}-001. See: ${list}`)
}

/** Names of agents, roles, labels and schedules. @throws CliExit 2 */
export function nameOf(what: string, text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text
  throw usageError(`${what} ${quote(text)}: a name has 1 to 64 letters, digits, ".", "_" or "-", and begins with a letter or digit`)
}
