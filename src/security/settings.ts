/** Declares the [security] settings: what tools may do and what is always refused. */

import type { Rows } from '../kit/settings.ts'

export const autonomyLevels = ['readonly', 'supervised', 'full'] as const

export const securityRows = {
  autonomy: {
    type: 'choice',
    values: autonomyLevels,
    default: 'supervised',
    env: 'BRAIDCLAW_AUTONOMY',
    project: 'stricter',
    init: 'written',
    about:
      'readonly: only low-risk tools. supervised: medium risk asks first, high risk is refused. full: low and medium run by themselves.',
  },
  workspace_only: {
    type: 'boolean',
    default: true,
    project: 'stricter',
    init: 'written',
    about: 'Refuse every path outside the workspace.',
  },
  forbidden_paths: {
    type: 'paths',
    default: ['/etc', '/sys', '/boot', '~/.ssh'],
    project: 'union',
    init: 'written',
    about: 'Paths that no tool and no command may touch, nor anything below them; links are followed.',
  },
  forbidden_commands: {
    type: 'words',
    form: 'command',
    default: ['rm', 'shutdown', 'reboot', 'mkfs', 'dd'],
    project: 'union',
    init: 'written',
    about: 'Commands that never run, however they are hidden in a command line.',
  },
  allow_commands: {
    type: 'words',
    form: 'command',
    default: [],
    about: 'Commands of medium risk in addition to the built-in list; every other command is of high risk.',
  },
  allowed_domains: {
    type: 'words',
    form: 'domain',
    default: [],
    about: 'Hosts that the http tool may read from as a low risk.',
  },
  allowed_ports: {
    type: 'ports',
    default: [],
    about: 'Ports that the http tool may connect to in addition to 80 and 443.',
  },
  approve_all_medium: {
    type: 'boolean',
    default: false,
    about: 'Answer yes to every question about a medium risk.',
  },
  allow_tools: {
    type: 'words',
    form: 'tool',
    default: [],
    about:
      'Executables that count as a low risk and so run without a question; all others are of medium risk, whatever they say of themselves.',
  },
  audit_log: {
    type: 'boolean',
    default: true,
    init: 'written',
    about: 'Log every verdict of the gate.',
  },
} as const satisfies Rows
