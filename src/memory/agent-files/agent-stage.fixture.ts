/** Provides tests with a memory and one agent, complete turns in its files, and turns whose process died before writing them. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordEntry, RunIdentity } from '../../runtime/port.ts'
import { callOf, createMemoryStage, finish, judgement, replied, runOf, started } from '../fixture.ts'
import { createRecorder, createRecordWriter } from '../record-writer.ts'
import { fileNames } from './agent-paths.ts'

export type AgentStage = ReturnType<typeof createAgentStage>

/** Returns the trace lines of turn `number`. */
export const told = (number: number): readonly string[] => [
  `user_input: question ${number}`,
  'tool_call: file_read {"path":"a.txt"}',
  'denied: file_read: Denied by safety: outside',
  `llm_response: answer ${number}`,
]

/** @param alter runs a statement on the database file, as another program would */
export function createAgentStage(alter: (path: string, sql: string) => void) {
  const said: string[] = []
  const log = (level: string, event: string) => void said.push(`${level} ${event}`)
  const memoryStage = createMemoryStage(undefined, log)
  const folder = join(memoryStage.folder, 'home', 'agents', 'default')

  const identity = (number: number): RunIdentity =>
    runOf(number, { conversationId: 'conversation_1', agent: { id: 'default', folder, pointer: 'conversation', remembers: true } })
  const redact = <T>(value: T): T =>
    JSON.stringify(value).includes('hunter2') ? JSON.parse(JSON.stringify(value).replaceAll('hunter2', '[secret]')) : value

  function writer() {
    return createRecordWriter({ memory: memoryStage.memory, log, now: () => memoryStage.clock.now++, redact })
  }

  const batches = (number: number): readonly (readonly RecordEntry[])[] => [
    [{ kind: 'external', event: started(`question ${number}`) }],
    [
      {
        kind: 'external',
        event: replied([
          { type: 'text', text: 'let me see' },
          { type: 'call', ...callOf('a') },
        ]),
      },
      { kind: 'denied', deny: { type: 'deny', id: 'a', call: callOf('a'), judgement, by: 'safety', reason: 'outside' } },
    ],
    [
      { kind: 'external', event: replied([{ type: 'text', text: `answer ${number}` }]) },
      { kind: 'finish', finish, digest: 'digest' },
    ],
  ]

  /** Runs one complete run through the real recorder. */
  async function turn(number: number): Promise<void> {
    const recorder = createRecorder(writer(), memoryStage.memory)
    for (const batch of batches(number)) await recorder.commit(identity(number), batch)
  }

  /** Simulates a run whose process died after `commits` commits without writing the lines of the last `unwritten` commits. */
  function crash(number: number, { commits, unwritten }: { readonly commits: number; readonly unwritten: number }): void {
    const { write, follow, abandon } = writer()
    for (const [at, batch] of batches(number).slice(0, commits).entries()) {
      write(identity(number), batch)
      if (at < commits - unwritten) follow(identity(number))
    }
    abandon(identity(number))
    alter(memoryStage.path, `UPDATE runs SET owner = '1@1-gone' WHERE run_id = '${identity(number).runId}'`)
  }

  const placeOf = (file: keyof typeof fileNames) => join(folder, fileNames[file])
  const text = (file: keyof typeof fileNames) => (existsSync(placeOf(file)) ? readFileSync(placeOf(file), 'utf8') : '')
  function contents(file: 'session' | 'history'): readonly string[] {
    return text(file)
      .split('\n')
      .flatMap((line) => {
        try {
          return [JSON.parse(line).content]
        } catch {
          return []
        }
      })
  }

  const events = (): readonly string[] =>
    text('trace')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ event, message }) => `${event}: ${message}`)

  const files = async () => (await memoryStage.memory.projections()).files

  return { memoryStage, folder, said, identity, batches, writer, turn, crash, placeOf, text, contents, events, files }
}
