/** Keeps the seed's session file of an agent: CONTROLPLANE_SESSION_CWD/{agent}.jsonl, one line a run, its fields in the seed's order. */

import { closeSync, fstatSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, attempt } from '../../kit/errors.ts'
import { parseJson } from '../../kit/json.ts'
import { type SessionLine, sessionLine } from '../contract/run-shapes.ts'

export type SessionLog = {
  /** Writes the line to the disk before it returns, and cuts off half a line that a crash left. @throws the system's error */
  append(line: SessionLine): void
  /** Returns the last whole line; undefined before the first, and when the file cannot be read. */
  last(): SessionLine | undefined
}

const TAIL = 256 * 1024

export function openSessionLog(folder: string, agentId: string): SessionLog {
  const path = join(folder, `${agentId}.jsonl`)
  return {
    append({ timestamp, task, skill, outcome, tokens_used }) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const fd = openSync(path, 'a+', 0o600)
      using _end = atEnd(() => closeSync(fd))
      cutTornLine(fd)
      writeSync(fd, `${JSON.stringify({ timestamp, task, skill, outcome, tokens_used })}\n`)
      fsyncSync(fd)
    },
    last() {
      const fd = attempt(() => openSync(path, 'r'))
      if (fd === undefined) return undefined
      const text = attempt(() => tailOf(fd).text) ?? ''
      closeSync(fd)
      return lastLine(text)
    },
  }
}

function tailOf(fd: number): { readonly text: string; readonly bytes: Buffer; readonly from: number } {
  const { size } = fstatSync(fd)
  const from = Math.max(0, size - TAIL)
  const bytes = Buffer.alloc(size - from)
  readSync(fd, bytes, 0, bytes.length, from)
  return { text: bytes.toString(), bytes, from }
}

/** Completes a whole line that only lacks its newline, and removes anything else after the last newline. */
function cutTornLine(fd: number): void {
  const { bytes, from } = tailOf(fd)
  const end = bytes.lastIndexOf(10) + 1
  if (end === bytes.length) return
  if (lineOf(bytes.toString('utf8', end)) !== undefined) writeSync(fd, '\n')
  else ftruncateSync(fd, from + end)
}

function lastLine(text: string): SessionLine | undefined {
  return text
    .split('\n')
    .reverse()
    .flatMap((line) => lineOf(line) ?? [])
    .at(0)
}

function lineOf(text: string): SessionLine | undefined {
  return sessionLine.safeParse(parseJson(text)).data
}
