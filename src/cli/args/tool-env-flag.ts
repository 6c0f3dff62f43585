/** Defines --tool-env, apart from the other flags of a turn because `agent` does not have it. */

import type { Flags } from './command.ts'

export const toolEnvFlag = {
  toolEnv: {
    type: 'text',
    many: true,
    setting: 'tools.env',
    about: 'A variable of the environment that executable tools get: NAME, or TOOL:NAME for one tool',
  },
} as const satisfies Flags
