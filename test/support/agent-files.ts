/** What an agent's folder holds, as tests look at it. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from './cli.ts'

export const agentFile = (at: Nest, path: string, id = 'default') => join(at.home, '.braidclaw/agents', id, path)

/** With its folders. */
export function write(path: string, text: string): void {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

/** `event: message` of each line of the trace. */
export const events = (at: Nest, id?: string) =>
  readFileSync(agentFile(at, 'agent.jsonl', id), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(({ event, message }) => `${event}: ${message}`)

/** `role: content` of each line of the session. */
export const session = (at: Nest, id?: string) => {
  const path = agentFile(at, 'sessions/current.jsonl', id)
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map(({ role, content }) => `${role}: ${content}`)
}
