/** Questions to the person at the terminal: one line in, one line out; EOF is an answer too, and it is no. */

import { closeSync, constants, openSync, read, readSync } from 'node:fs'
import { escapeHidden } from '../../kit/escape.ts'
import { cut, flat, visible } from '../../kit/text.ts'
import type { Judgement } from '../../runtime/event.ts'
import type { AskLine } from '../../runtime/port.ts'
import { createPrinter, type Overlay } from './printer.ts'

export type Asked = { readonly tool: string; readonly judgement: Judgement; readonly args: string }

/** The block of seed 001: what is asked, how risky, why, with exactly what. */
export function approvalQuestion({ tool, judgement, args }: Asked): string {
  return [
    '',
    'Tool request:',
    `  tool: ${visible(tool)}`,
    `  risk: ${judgement.risk}`,
    `  reason: ${oneLine(judgement.reason)}`,
    `  args: ${cut(visible(args), 2_000)}`,
    `  plan: ${oneLine(judgement.summary)} (${judgement.plan.slice(0, 12)})`,
    'Approve? [y/N/a] ',
  ].join('\n')
}

/** A reason and a summary were made visible when the call was judged. */
function oneLine(words: string): string {
  return flat(escapeHidden(words))
}

/** Only a clear yes is one. `always` is yes, and for the rest of this session for the same inner command or tool. */
export function readAnswer(line: string | undefined): 'yes' | 'always' | 'no' {
  const word = line?.trim().toLowerCase()
  if (word === 'y' || word === 'yes') return 'yes'
  return word === 'a' || word === 'always' ? 'always' : 'no'
}

/**
 * Asks and reads on a terminal descriptor, wherever stdout and stderr go, in its ordinary (cooked) mode: the kernel does the editing and
 * hands over one line a read. Only what is typed after the question answers it.
 */
export function createAskLine(fd: number, overlay?: Overlay): AskLine {
  const state: { reading?: Promise<string | undefined> } = {}
  const { write } = createPrinter(fd, overlay)
  return async (question, signal) => {
    if (signal?.aborted) return undefined
    forgetTypedAhead(fd)
    write(question)
    state.reading ??= readLine(fd).finally(() => {
      state.reading = undefined
    })
    const takenBack = new Promise<undefined>((resolve) => signal?.addEventListener('abort', () => resolve(undefined), { once: true }))
    const line = await Promise.race([state.reading, takenBack])
    // Enter was echoed by the terminal itself.
    if (line === undefined) write('\n')
    else overlay?.printed('\n')
    return line
  }
}

/** The descriptor is read in the thread pool: it stays open, and an unanswered question does not keep the process alive. */
function readLine(fd: number): Promise<string | undefined> {
  const bytes = new Uint8Array(4096)
  return new Promise((resolve) =>
    read(fd, bytes, 0, bytes.length, null, (error, count) =>
      resolve(error || count === 0 ? undefined : new TextDecoder().decode(bytes.subarray(0, count)).replace(/\r?\n$/, '')),
    ),
  )
}

function forgetTypedAhead(fd: number): void {
  try {
    const waiting = openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    try {
      while (readSync(waiting, new Uint8Array(4096)) > 0);
    } finally {
      closeSync(waiting)
    }
  } catch {
    // EAGAIN: nothing was typed ahead.
  }
}
