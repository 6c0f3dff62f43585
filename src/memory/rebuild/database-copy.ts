/** Copies the database while other processes write, and adapts a restored copy to the folder it was restored to. */

import type { Store } from '../store.ts'
import { allPointers, type Pointer } from './rebuild-files.ts'

/** The position up to which the database accounts for a file of an agent. */
export type AgentFileMark = { readonly folder: string; readonly file: string; readonly bytes: number }

export type DatabaseCopies = {
  /** Writes one consistent copy, without the free pages of deleted rows. The file must not exist. @throws SQLiteError */
  copyTo(path: string): void
  marks(): readonly AgentFileMark[]
  /** The files that name the conversation that a session continues, beside the database, and what each should name. */
  pointers(): readonly Pointer[]
  /** Folders of agents below `from` are below `to` from now on. */
  moveAgents(from: string, to: string): void
}

export function createDatabaseCopies(store: Store): DatabaseCopies {
  const { sql, write } = store
  return {
    pointers: () => allPointers(store),
    copyTo: (path) => void store.run('VACUUM INTO ?', path),
    marks: () => sql<AgentFileMark, []>(`SELECT folder, file, bytes FROM agent_files WHERE folder <> ''`).all(),
    moveAgents(from, to) {
      write(() => {
        const update = 'SET folder = ?1 || substr(folder, length(?2) + 1) WHERE substr(folder, 1, length(?3)) = ?3'
        for (const table of ['agent_files', 'unprojected']) store.run(`UPDATE ${table} ${update}`, to, from, `${from}/`)
      })
    },
  }
}
