/** Asks the person at the terminal for approval: one question, one line of answer; end of input means no. */

import { closeSync, constants, openSync, read, readSync } from 'node:fs'
import { escapeHidden } from '../../kit/escape.ts'
import { cut, flat, visible } from '../../kit/text.ts'
import type { Judgement } from '../../runtime/event.ts'
import type { AskLine } from '../../runtime/port.ts'
import { createPrinter, type Overlay } from './printer.ts'

export type Asked = { readonly tool: string; readonly judgement: Judgement; readonly args: string }

/** Formats the question in the layout of seed 001: tool, risk, reason, arguments, plan. */
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

/** The judgement already made reason and summary visible. */
function oneLine(words: string): string {
  return flat(escapeHidden(words))
}

/** Accepts only a clear yes. `always` means yes now, and for the rest of this session for the same inner command or tool. */
export function readAnswer(line: string | undefined): 'yes' | 'always' | 'no' {
  const word = line?.trim().toLowerCase()
  if (word === 'y' || word === 'yes') return 'yes'
  return word === 'a' || word === 'always' ? 'always' : 'no'
}

/**
 * Asks and reads on a terminal descriptor, independent of stdout and stderr, in canonical (cooked) mode: the kernel does the editing and
 * returns one line per read. Only input typed after the question counts as its answer.
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
    // The terminal itself echoed Enter.
    if (line === undefined) write('\n')
    else overlay?.printed('\n')
    return line
  }
}

/** Reads the descriptor in the thread pool: the descriptor stays open, and an unanswered question does not keep the process alive. */
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
    // EAGAIN: no input was typed ahead.
  }
}
