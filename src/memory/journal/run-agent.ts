/** The agent of a run as the database keeps it: its folder relative to the database, so that a home can be moved. */

import { dirname, join, relative } from 'node:path'
import { isObject } from '../../kit/json.ts'
import type { RunAgent } from '../../runtime/port.ts'

/** What names a folder in the database. */
export function folderKey(databasePath: string, folder: string): string {
  return relative(dirname(databasePath), folder)
}

export function folderOfKey(databasePath: string, key: string): string {
  return join(dirname(databasePath), key)
}

export function agentText(databasePath: string, agent: RunAgent): string {
  return JSON.stringify({ ...agent, folder: folderKey(databasePath, agent.folder) })
}

/** Undefined for a run without one, and for what nobody of ours wrote. */
export function agentIn(databasePath: string, text: string | null): RunAgent | undefined {
  const value = parsed(text ?? 'null')
  if (!isObject(value)) return undefined
  const { id, folder, pointer, remembers } = value
  if (typeof id !== 'string' || typeof folder !== 'string' || typeof pointer !== 'string') return undefined
  return { id, folder: folderOfKey(databasePath, folder), pointer, ...(remembers === true ? { remembers } : {}) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
