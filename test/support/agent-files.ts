/** Reads and writes the files of an agent's folder for tests. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from './cli.ts'

export const agentFile = (at: Nest, path: string, id = 'default') => join(at.home, '.braidclaw/agents', id, path)

/** Creates missing folders too. */
export function write(path: string, text: string): void {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

/** Returns `event: message` for each line of the trace. */
export const events = (at: Nest, id?: string) =>
  readFileSync(agentFile(at, 'agent.jsonl', id), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(({ event, message }) => `${event}: ${message}`)

/** Returns `role: content` for each line of the session. */
export const session = (at: Nest, id?: string) => {
  const path = agentFile(at, 'sessions/current.jsonl', id)
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(({ role, content }) => `${role}: ${content}`)
}
