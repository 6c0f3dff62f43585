/** Defines the settings of [channels.cli], the command line. */

import type { Rows } from '../../kit/settings.ts'

const settings = {
  enabled: { type: 'boolean', default: true, project: 'free', init: 'written', about: 'Whether `braidclaw agent` may be used.' },
  tools_allow: {
    type: 'words',
    form: 'tool',
    project: 'stricter',
    absent: 'every built-in tool',
    example: ['file_read', 'file_list', 'time', 'memory_search', 'shell'],
    about: 'The tools offered to the model on the command line.',
  },
} as const satisfies Rows

export const cliChannel = { name: 'cli', settings } as const
