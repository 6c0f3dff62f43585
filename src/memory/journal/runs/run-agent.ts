/** Stores the agent of a run with its folder relative to the database, so that a home can be moved. */

import { dirname, join, relative } from 'node:path'
import { isObject, parseJson } from '../../../kit/json.ts'
import type { RunAgent } from '../../../runtime/port.ts'

/** Returns the name of a folder in the database. */
export function folderKey(databasePath: string, folder: string): string {
  return relative(dirname(databasePath), folder)
}

export function folderOfKey(databasePath: string, key: string): string {
  return join(dirname(databasePath), key)
}

export function agentText(databasePath: string, agent: RunAgent): string {
  return JSON.stringify({ ...agent, folder: folderKey(databasePath, agent.folder) })
}

/** Returns undefined for a run without an agent, and for text that our code did not write. */
export function agentIn(databasePath: string, text: string | null): RunAgent | undefined {
  const value = parseJson(text ?? 'null')
  if (!isObject(value)) return undefined
  const { id, folder, pointer, remembers } = value
  if (typeof id !== 'string' || typeof folder !== 'string' || typeof pointer !== 'string') return undefined
  return { id, folder: folderOfKey(databasePath, folder), pointer, ...(remembers === true ? { remembers } : {}) }
}
