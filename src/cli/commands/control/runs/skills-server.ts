/** Implements `control skills-server`: the MCP server that claude and codex are given to search an agent's skills. */

import { resolve } from 'node:path'
import { version } from '../../../../../package.json'
import { serveSkills } from '../../../../control/skills/serve-skills.ts'
import { visible } from '../../../../kit/text.ts'
import type { Command, Flags } from '../../../args/command.ts'
import { CliExit, exitCodes } from '../../../exit.ts'

const flags = {
  library: { type: 'text', about: 'The library.yaml' },
  agent: { type: 'text', about: 'Whose skills' },
  role: { type: 'text', short: 'r', about: 'The role of the agent (default: its name)' },
} as const satisfies Flags

export const skillsServer = {
  flags,
  examples: [['--library agent/library.yaml --agent sysadmin', 'speaks MCP on stdin and stdout until its input ends']],
  async run(context, { library, agent, role = agent }) {
    if (library === undefined || agent === undefined || role === undefined)
      throw new CliExit(exitCodes.usage, 'error: --library and --agent are needed: which skills of which agent')
    const io = { input: Bun.stdin.stream(), write: (text: string) => context.process.stdout.data(text) }
    const served = await serveSkills({ file: resolve(context.cwd, library), owner: { id: agent, role }, version, io })
    if (!served.ok) throw new CliExit(exitCodes.error, `error: ${visible(served.message)}`)
  },
} as const satisfies Command<typeof flags>
