/**
 * Implements `reset`: it archives the session of an agent, so that `-c` begins a new conversation. It deletes nothing; memory and receipts
 * stay.
 */

import { existsSync } from 'node:fs'
import { withMemory } from '../../../host/open/open-records.ts'
import { agentProfileOf, runAgent } from '../../../host/setup/agent-profile.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { forgetPointer } from '../../../memory/agent-files/conversation-pointer.ts'
import { archiveSession } from '../../../memory/agent-files/session-file.ts'
import type { Command, Flags } from '../../args/command.ts'
import { agentFlag, jsonFlag } from '../../args/flags.ts'

const flags = { ...agentFlag, ...jsonFlag } as const satisfies Flags

export const reset = {
  flags: flags,
  examples: [['', 'sessions/current.jsonl becomes sessions/<time>.jsonl']],
  async run(context, { agent, json = false }) {
    const setup = loadSetup(context, { agent })
    const agentProfile = agentProfileOf(setup)
    const { id, paths } = agentProfile
    const putAside = () => {
      forgetPointer(paths.conversation)
      return archiveSession(paths.session, Date.now())
    }
    // Before the first turn there is no record to update.
    const noted = existsSync(setup.config.memory.path)
    const archive = noted
      ? await withMemory(setup, async ({ files }) => {
          await files.prepare()
          return files.reset(runAgent(agentProfile), putAside)
        })
      : putAside()
    if (json) context.process.stdout.write(`${JSON.stringify({ agent: id, archive: archive ?? null })}\n`)
    else context.process.stdout.write(archive === undefined ? `the session of "${id}" is empty\n` : `archived ${archive}\n`)
  },
} as const satisfies Command<typeof flags>
