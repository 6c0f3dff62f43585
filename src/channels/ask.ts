/** Questions to the person at the terminal: one line in, one line out; EOF is an answer too, and it is no. */

import { read } from 'node:fs'
import type { Judgement } from '../runtime/event.ts'

/** @returns the line without its end, or undefined at EOF or when the question was taken back. */
export type AskLine = (question: string, signal?: AbortSignal) => Promise<string | undefined>

export type Asked = { readonly tool: string; readonly judgement: Judgement; readonly args: string }

/** The block of seed 001: what is asked, how risky, why, with exactly what. */
export function approvalQuestion({ tool, judgement, args }: Asked): string {
  return [
    '',
    'Tool request:',
    `  tool: ${tool}`,
    `  risk: ${judgement.risk}`,
    `  reason: ${judgement.reason}`,
    `  args: ${args}`,
    `  plan: ${judgement.summary} (${judgement.plan.slice(0, 12)})`,
    'Approve? [y/N/a] ',
  ].join('\n')
}

/** Only a clear yes is one. `always` is yes, and for the rest of this session for the same inner command or tool. */
export function readAnswer(line: string | undefined): 'yes' | 'always' | 'no' {
  const word = line?.trim().toLowerCase()
  if (word === 'y' || word === 'yes') return 'yes'
  return word === 'a' || word === 'always' ? 'always' : 'no'
}

/** Reads lines from a terminal descriptor in its ordinary (cooked) mode, where the kernel does the editing. */
export function createAskLine(fd: number, write: (text: string) => void): AskLine {
  const reader = lines(fd)
  return async (question, signal) => {
    write(question)
    const takenBack = new Promise<undefined>((resolve) => signal?.addEventListener('abort', () => resolve(undefined), { once: true }))
    const line = await Promise.race([reader.next().then(({ value, done }) => (done ? undefined : value)), takenBack])
    if (line === undefined) write('\n')
    return line
  }
}

/** The descriptor is read in the thread pool: it stays open, and an unanswered question does not keep the process alive. */
async function* lines(fd: number): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const bytes = new Uint8Array(4096)
    const count = await new Promise<number>((resolve) => read(fd, bytes, 0, bytes.length, null, (error, got) => resolve(error ? 0 : got)))
    if (count === 0) return undefined
    rest += decoder.decode(bytes.subarray(0, count), { stream: true })
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const line = rest.slice(0, end)
      rest = rest.slice(end + 1)
      yield line
    }
  }
}
