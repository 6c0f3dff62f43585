/** Where the files of one agent lie: all of them text that `cat`, `grep` and `jq` read. */

import { join } from 'node:path'

export type AgentPaths = ReturnType<typeof agentPaths>

export function agentPaths(folder: string) {
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
    conversation: join(folder, 'sessions', 'conversation'),
    /** One line a call of the stub. */
    stub: join(folder, 'stub.calls'),
  }
}
