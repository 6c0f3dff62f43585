/** Defines the paths of one agent's files, all of them text that `cat`, `grep` and `jq` can read. */

import { join } from 'node:path'

export type AgentPaths = ReturnType<typeof agentPaths>

/** @param pointer the file of `sessions` that names the conversation which `-c` continues */
export function agentPaths(folder: string, pointer = 'conversation') {
  return {
    folder,
    soul: join(folder, 'soul.md'),
    context: join(folder, 'context'),
    /** One {"ts","agent","event","message"} per line. */
    log: join(folder, 'agent.jsonl'),
    sessions: join(folder, 'sessions'),
    /** One {"ts","role","content"} per line. */
    session: join(folder, 'sessions', 'current.jsonl'),
    /** Contains the id of the conversation that `-c` continues. */
    conversation: join(folder, 'sessions', pointer),
    /** One line per call of the stub. */
    stub: join(folder, 'stub.calls'),
  }
}

/** The files into which the projector writes conversations, line by line. */
export type AgentFile = 'trace' | 'session' | 'history'

/** File names relative to the agent's folder. */
export const fileNames: { readonly [file in AgentFile]: string } = {
  trace: 'agent.jsonl',
  session: 'sessions/current.jsonl',
  history: 'history.jsonl',
}

export const agentFiles: readonly AgentFile[] = ['trace', 'session', 'history']
