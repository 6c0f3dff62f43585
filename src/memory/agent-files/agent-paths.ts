/** Defines the paths of one agent's files, all of them text that `cat`, `grep` and `jq` can read, and of its memory, which people edit and keep. */

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

/** `agents` contains the folders of all agents. `chosen`, when configured, is the folder of the agent "default". */
export function agentFolder({ agents, id, chosen }: { readonly agents: string; readonly id: string; readonly chosen?: string }): string {
  return id === 'default' && chosen !== undefined ? chosen : join(agents, id)
}

export type FolderPaths = ReturnType<typeof folderPaths>

/** `marker` and `rest` exist only while a compaction replaces files. */
export function folderPaths(folder: string) {
  return {
    folder,
    soul: join(folder, 'soul.md'),
    summary: join(folder, 'summary.md'),
    history: join(folder, 'history.jsonl'),
    pins: join(folder, 'pins.jsonl'),
    /** Every compacted line, in order. */
    archive: join(folder, 'history.archive.jsonl'),
    /** One line per compaction: the model, the lines it covers, and digests. */
    log: join(folder, 'compactions.jsonl'),
    failures: join(folder, 'compaction.failures.json'),
    marker: join(folder, 'compaction.json'),
    rest: join(folder, 'history.jsonl.next'),
    /** The marker of src/planck.ts, which shares these folders: [summary, history], both complete. */
    pending: join(folder, 'compaction.planck'),
    /** A process locks this file for a few milliseconds while it writes, or while it reads several files consistently. */
    lock: join(folder, '.lock'),
    /** A process locks this file while it waits for a summary. */
    compacting: join(folder, '.compacting'),
  }
}
