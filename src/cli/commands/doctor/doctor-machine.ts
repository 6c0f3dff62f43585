/** Checks for `doctor` what the machine offers: programs, and a terminal. */

import { isTerminal, openTerminal } from '../../../channels/terminal/tty.ts'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import type { Finding } from './doctor-finding.ts'

export function machineFindings(): Finding[] {
  return [...programs(), terminal()]
}

function programs(): Finding[] {
  const wanted = [
    ['bash', 'the shell tool needs it'],
    ['rg', 'search is faster with it (package ripgrep)'],
    ['git', 'useful in workspaces'],
  ] as const
  return wanted.map(([name, why]) => {
    const found = resolveExecutable(name)
    return found
      ? { what: 'program', state: 'ok', says: found }
      : { what: 'program', state: 'note', says: `${name} is not installed: ${why}` }
  })
}

function terminal(): Finding {
  if (openTerminal() === undefined)
    return { what: 'terminal', state: 'note', says: 'none: approvals cannot be asked here, medium risk ends with exit 4' }
  return {
    what: 'terminal',
    state: 'ok',
    says: isTerminal(1) ? 'approvals can be asked' : 'approvals can be asked (stdout is not a terminal)',
  }
}
