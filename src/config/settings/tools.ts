/** [tools]: the operator's own tools, and who runs the loop. */

import { toolBackends } from '../config.ts'
import type { Setting } from '../setting.ts'

export const tools: readonly Setting[] = [
  {
    key: 'tools.dir',
    type: 'path',
    default: '~/.braidclaw/tools',
    project: 'refused',
    about: 'The folder of your own tools: executables that answer --describe (docs/tools.md).',
  },
  {
    key: 'tools.executables',
    type: 'words',
    form: 'tool',
    default: [],
    project: 'stricter',
    about: 'Which of them every turn offers to the model. Without being named here or by --tools, none is.',
  },
  {
    key: 'tools.backend',
    type: 'choice',
    values: toolBackends,
    default: 'native',
    env: 'BRAIDCLAW_TOOL_BACKEND',
    project: 'refused',
    about: 'Who runs the loop of a turn with --tools: ourselves, or the script for bash or llm (docs/tool-backends.md).',
  },
]
