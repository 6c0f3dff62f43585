/** Defines the paths in the memory folder of one agent, whose files people read, edit and keep. */

import { join } from 'node:path'

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
