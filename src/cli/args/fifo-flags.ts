/** Defines the flags of the commands that use the six FIFOs. */

import type { Flags } from './command.ts'

export const folderFlags = {
  fifoDir: { type: 'text', about: 'The folder of the six FIFOs (default: PLANCKCLAW_FIFOS, or /tmp/planckclaw)' },
  envFile: { type: 'text', about: 'NAME=value lines, read and never run (default: config.env in the home, if it is there)' },
} as const satisfies Flags
