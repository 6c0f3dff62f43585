/** [security]: what may happen, and what never. */

import { autonomyLevels } from '../config.ts'
import type { Setting } from '../setting.ts'

export const security: readonly Setting[] = [
  {
    key: 'security.autonomy',
    type: 'choice',
    values: autonomyLevels,
    default: 'supervised',
    env: 'BRAIDCLAW_AUTONOMY',
    project: 'stricter',
    about:
      'readonly: only low-risk tools. supervised: medium risk asks first, high risk is refused. full: low and medium run by themselves.',
  },
  {
    key: 'security.workspace_only',
    type: 'boolean',
    default: true,
    project: 'stricter',
    about: 'Refuse every path outside the workspace.',
  },
  {
    key: 'security.forbidden_paths',
    type: 'paths',
    default: ['/etc', '/sys', '/boot', '~/.ssh'],
    project: 'stricter',
    about: 'Paths that no tool and no command may touch, nor anything below them; links are followed.',
  },
  {
    key: 'security.forbidden_commands',
    type: 'words',
    form: 'command',
    default: ['rm', 'shutdown', 'reboot', 'mkfs', 'dd'],
    project: 'stricter',
    about: 'Commands that never run, however they are hidden in a command line.',
  },
  {
    key: 'security.allow_commands',
    type: 'words',
    form: 'command',
    default: [],
    project: 'refused',
    about: 'Commands of medium risk in addition to the built-in list; every other command is of high risk.',
  },
  {
    key: 'security.allowed_domains',
    type: 'words',
    form: 'domain',
    default: [],
    project: 'refused',
    about: 'Hosts that the http tool may read from as a low risk.',
  },
  {
    key: 'security.allowed_ports',
    type: 'ports',
    default: [],
    project: 'refused',
    about: 'Ports that the http tool may connect to in addition to 80 and 443.',
  },
  {
    key: 'security.approve_all_medium',
    type: 'boolean',
    default: false,
    project: 'refused',
    about: 'Answer yes to every question about a medium risk.',
  },
  {
    key: 'security.allow_tools',
    type: 'words',
    form: 'tool',
    default: [],
    project: 'refused',
    about:
      'Executables that count as a low risk and so run without a question; all others are of medium risk, whatever they say of themselves.',
  },
  {
    key: 'security.audit_log',
    type: 'boolean',
    default: true,
    project: 'refused',
    about: 'Log every verdict of the gate.',
  },
]
