/** Where the files of one agent lie: all of them text that `cat`, `grep` and `jq` read. */

import { join } from 'node:path'
import { sha256 } from '../../kit/sha256.ts'

export type AgentPaths = ReturnType<typeof agentPaths>

/** `place`: the folder one is in, for an agent whose conversations belong to folders. */
export function agentPaths(folder: string, place?: string) {
  return {
    folder,
    soul: join(folder, 'soul.md'),
    context: join(folder, 'context'),
    /** One {"ts","agent","event","message"} a line. */
    log: join(folder, 'agent.jsonl'),
    sessions: join(folder, 'sessions'),
    /** One {"ts","role","content"} a line. */
    session: join(folder, 'sessions', 'current.jsonl'),
    /** The id of the conversation in memory that `-c` goes on with. */
    conversation: join(folder, 'sessions', place === undefined ? 'conversation' : `conversation-${sha256(place).slice(0, 16)}`),
    /** One line a call of the stub. */
    stub: join(folder, 'stub.calls'),
  }
}
