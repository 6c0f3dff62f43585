/** Where the memory of one agent lies: a folder of files that people read, edit and keep. */

import { join } from 'node:path'

/** `agents`: the folder of all of them. `chosen`, when configured, is that of the agent "default". */
export function agentFolder({ agents, id, chosen }: { readonly agents: string; readonly id: string; readonly chosen?: string }): string {
  return id === 'default' && chosen !== undefined ? chosen : join(agents, id)
}

export type FolderPaths = ReturnType<typeof folderPaths>

/** `marker` and `rest` are there only while a compaction is being put in place. */
export function folderPaths(folder: string) {
  return {
    folder,
    soul: join(folder, 'soul.md'),
    summary: join(folder, 'summary.md'),
    history: join(folder, 'history.jsonl'),
    pins: join(folder, 'pins.jsonl'),
    /** Every line that was compacted, in order. */
    archive: join(folder, 'history.archive.jsonl'),
    /** One line a compaction: who made it, of which lines, and digests. */
    log: join(folder, 'compactions.jsonl'),
    failures: join(folder, 'compaction.failures.json'),
    marker: join(folder, 'compaction.json'),
    rest: join(folder, 'history.jsonl.next'),
    /** The same of src/planck.ts, which shares these folders: [summary, history], both whole. */
    pending: join(folder, 'compaction.planck'),
    /** Held for a few milliseconds by whoever writes, or reads several files as one. */
    lock: join(folder, '.lock'),
    /** Held by whoever waits for a summary. */
    compacting: join(folder, '.compacting'),
  }
}
