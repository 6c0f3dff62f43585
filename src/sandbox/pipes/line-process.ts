/** Keeps a child process that is spoken to in lines, and ends it when it floods, prints a line without end, or dies. */

import { closeSync } from 'node:fs'
import { createLineSplitter } from '../../kit/lines.ts'
import { cut, visible } from '../../kit/text.ts'
import type { LineListener, LineProcess, Spawn, SpawnPlan } from '../contract.ts'
import { openLibc } from '../libc.ts'
import { openInput, writeWhole } from './command-pipes.ts'

const maxLineBytes = 8 * 1024 * 1024
const floodBytes = 64 * 1024 * 1024

type LineProcessOptions = LineListener & {
  readonly spawn: Spawn
  readonly plan: Omit<SpawnPlan, 'stdin' | 'signal' | 'onOutput'>
  /** An abort ends the process. */
  readonly closed: AbortSignal
}

export function startLineProcess({ spawn, plan, closed, onLine, onOver }: LineProcessOptions): LineProcess {
  const pipe = openInput(openLibc())
  const over = new AbortController()
  const splitter = createLineSplitter(maxLineBytes)
  const decoder = new TextDecoder()
  let [bytes, stderr, sent] = [0, '', Promise.resolve(true)]
  let reason: string | undefined

  function stop(why: string): void {
    if (reason !== undefined) return
    reason = why
    over.abort()
    onOver(why)
  }

  function onOutput(chunk: Uint8Array, from: 'stdout' | 'stderr'): void {
    bytes += chunk.length
    if (bytes > floodBytes) stop(`it printed more than ${floodBytes} bytes in one call`)
    if (from === 'stderr') stderr = (stderr + decoder.decode(chunk, { stream: true })).slice(-1_000)
    if (from === 'stderr' || over.signal.aborted) return
    for (const line of splitter.push(chunk)) {
      if (!line.ok) stop(line.error)
      else if (!over.signal.aborted) onLine(line.text)
    }
  }

  const ended = spawn({ ...plan, stdin: pipe.theirs, signal: AbortSignal.any([over.signal, closed]), onOutput }).then((result) => {
    const said = stderr.trim() === '' ? '' : `: ${cut(visible(stderr.trim()), 300)}`
    const how = result.ok ? (result.stopped ?? result.signal ?? `exit code ${result.code}`) : visible(result.message)
    stop(`its process ended with ${how}${said}`)
    for (const end of [pipe.ours, pipe.theirs]) closeSync(end)
  })

  return {
    stop,
    ended,
    over: () => reason,
    expect() {
      bytes = 0
    },
    send(line) {
      // One whole line after the other, also when the pipe is full.
      sent = sent.then(() => !over.signal.aborted && writeWhole(pipe.ours, `${line}\n`, over.signal))
      return sent
    },
  }
}
