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

/** The files that the record of conversations is written into, line by line. */
export type AgentFile = 'trace' | 'session' | 'history'

/** By their names in the folder of an agent. */
export const fileNames: { readonly [file in AgentFile]: string } = {
  trace: 'agent.jsonl',
  session: 'sessions/current.jsonl',
  history: 'history.jsonl',
}

export const agentFiles: readonly AgentFile[] = ['trace', 'session', 'history']
