/** Provides tests with a policy as the gate would pass it: workspace /ws, the real path gate, every tool in /usr/bin. */

import { judgePath } from '../targets/path.ts'
import { type CommandPolicy, type CommandVerdict, judgeCommand } from './judge.ts'
import { defaultAllow } from './names.ts'

export function policyFor(changes: Partial<CommandPolicy> = {}): CommandPolicy {
  const cwd = changes.cwd ?? '/ws'
  const paths = {
    workspace: cwd,
    workspaceOnly: true,
    forbiddenPaths: ['/etc', '~/.ssh'],
    protectedPaths: ['/home/u/.braidclaw'],
    home: '/home/u',
  }
  return {
    allow: defaultAllow,
    forbidden: ['rm', 'shutdown', 'reboot', 'mkfs', 'dd'],
    cwd,
    home: '/home/u',
    resolve: (name) => `/usr/bin/${name}`,
    path: (path, access, from) => judgePath({ path, access: access === 'write' ? 'write' : 'read', cwd: from, policy: paths }),
    ...changes,
  }
}

/** Blocked, high or medium. */
export function ratingOf(command: string, changes: Partial<CommandPolicy> = {}): 'blocked' | 'high' | 'medium' {
  const { verdict, risk } = judgeCommand(command, policyFor(changes))
  return verdict === 'blocked' ? 'blocked' : risk
}

export function verdictOf(command: string, changes: Partial<CommandPolicy> = {}): CommandVerdict {
  return judgeCommand(command, policyFor(changes))
}

/** `template` with the command in place of every `@`. */
export function placed(template: string, command: string): string {
  return template.replaceAll('@', () => command)
}
