/** Asks the person at the terminal for approval: one question, one line of answer; end of input means no. */

import { spawn } from 'node:child_process'
import { closeSync, constants, openSync, read, readSync } from 'node:fs'
import type { Environment } from '../../host/api.ts'
import { atEnd, attempt } from '../../kit/errors.ts'
import { escapeHidden } from '../../kit/escape.ts'
import type { JsonObject } from '../../kit/json.ts'
import { cut, flat, visible } from '../../kit/text.ts'
import type { Judgement } from '../../runtime/event.ts'
import { createPrinter, type Overlay, type Printed } from './printer.ts'

type ToolRequest = { readonly tool: string; readonly judgement: Judgement; readonly input: JsonObject }

const prompt = 'Approve? [y/N/a] '

/** Formats the question about a call: what would run, one line of tool, risk and reason, and the prompt. */
export function approvalQuestion(asked: ToolRequest): string {
  const { tool, judgement, input } = asked
  const summary = oneLine(judgement.summary)
  const lines = Object.entries(input).map(([name, value]) => {
    const [first = '', ...more] = (typeof value === 'string' ? value : JSON.stringify(value)).split('\n').map(visible)
    return more.length === 0 && summary.includes(first) ? '' : [`\n  ${visible(name)}: ${first}`, ...more].join('\n    ')
  })
  return `\n${cut(`  ${summary}${lines.join('')}`, 2_000)}\n${requestLine(visible(tool), judgement)}${prompt}`
}

/** Formats `shell · medium risk · it writes to the workspace`. */
export function requestLine(what: string, { risk, reason }: Judgement): string {
  return `${what} · ${risk} risk · ${oneLine(reason)} (? shows more)\n`
}

/** Formats what the question leaves out, in the words of the record. */
export function requestDetails({ tool, judgement: { plan, rule, summary }, input }: ToolRequest): string {
  return `  tool: ${visible(tool)}\n  rule: ${visible(rule)}\n  plan: ${oneLine(summary)} (${plan})\n  args: ${cut(visible(JSON.stringify(input)), 20_000)}\n`
}

/** Asks about a call, and again with its details after `?`. */
export async function askAboutCall(asked: ToolRequest, ask: AskPerson, signal: AbortSignal): Promise<ApprovalAnswer | undefined> {
  for (let question = approvalQuestion(asked), times = 0; times < patience; question = `${requestDetails(asked)}${prompt}`, times++) {
    const line = await ask(question, signal)
    if (line === undefined) return undefined
    if (!/^\s*[?d]\s*$/i.test(line)) return readAnswer(line)
  }
  return undefined
}

/** The most unclear answers in a row before they count as a no: a terminal that answers by itself must not be asked for ever. */
export const patience = 8

/** The judgement already made reason and summary visible. */
export function oneLine(words: string): string {
  return flat(escapeHidden(words))
}

/**
 * `yes` and `always` only for those words: `always` means yes now, and from now on for the same inner command or tool. `note` is what was
 * typed after a no, for the model. `unclear` is not a yes.
 */
export type ApprovalAnswer = { readonly kind: 'yes' | 'always' | 'no' | 'unclear'; readonly note?: string }

export function readAnswer(line: string | undefined): ApprovalAnswer {
  const typed = line?.trim() ?? ''
  const word = typed.toLowerCase()
  if (word === 'y' || word === 'yes') return { kind: 'yes' }
  if (word === 'a' || word === 'always') return { kind: 'always' }
  const [, note] = /^no?(?:[\s,:;.-]+(.*))?$/is.exec(typed) ?? []
  if (note) return { kind: 'no', note }
  return { kind: typed === '' || word === 'n' || word === 'no' ? 'no' : 'unclear' }
}

/** Asks the person at a terminal. */
export type AskPerson = {
  /** @returns the line without its newline; undefined at the end of input and when `signal` withdraws the question */
  (question: Printed, signal?: AbortSignal): Promise<string | undefined>
  /** Opens files in the person's editor. @returns its exit code; undefined when it could not be started */
  edit(files: readonly string[]): Promise<number | undefined>
}

/**
 * Asks and reads on a terminal descriptor, independent of stdout and stderr, in canonical (cooked) mode: the kernel does the editing and
 * returns one line per read. Only input typed after the question counts as its answer, unless `keepTypedAhead` says otherwise.
 */
export function createAskLine(
  fd: number,
  { overlay, env = {} }: { readonly overlay?: Overlay; readonly env?: Environment } = {},
): AskPerson & ((question: Printed, signal?: AbortSignal, keepTypedAhead?: boolean) => Promise<string | undefined>) {
  const state: { reading?: Promise<string | undefined> } = {}
  const { write } = createPrinter(fd, overlay)
  const ask = async (question: Printed, signal?: AbortSignal, keepTypedAhead = false): Promise<string | undefined> => {
    if (signal?.aborted) return undefined
    if (!keepTypedAhead) forgetTypedAhead(fd)
    write(question)
    state.reading ??= readLine(fd).finally(() => delete state.reading)
    const takenBack = new Promise<undefined>((resolve) => signal?.addEventListener('abort', () => resolve(undefined), { once: true }))
    const line = await Promise.race([state.reading, takenBack])
    // The terminal itself echoed Enter.
    if (line === undefined) write('\n')
    else overlay?.printed('\n')
    return line
  }
  // A question that was withdrawn still reads: it would take the first line typed into the editor.
  return Object.assign(ask, { edit: async (files: readonly string[]) => (state.reading ? undefined : await runEditor({ files, env, fd })) })
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
  // EAGAIN: no input was typed ahead.
  attempt(() => {
    const waiting = openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    using _end = atEnd(() => closeSync(waiting))
    while (readSync(waiting, new Uint8Array(4096)) > 0);
  })
}

type Editing = { readonly files: readonly string[]; readonly env: Environment; readonly fd?: number }

/**
 * Runs the person's editor on the terminal and waits for its end; Ctrl-C belongs to the editor meanwhile. VISUAL or EDITOR names the editor,
 * as a command line of the shell. Without `fd` the terminal is the one on stdin.
 * @returns the exit code; undefined when it could not be started or was killed by a signal
 */
export function runEditor({ files, env, fd: given }: Editing): Promise<number | undefined> {
  // Bun refuses descriptor 0 in another place than the first.
  const own = given || openSync('/proc/self/fd/0', 'r+')
  const command = env.VISUAL || env.EDITOR || 'vi'
  const release = holdInterrupts()
  return new Promise<number | undefined>((resolve) => {
    const child = spawn('/bin/sh', ['-c', `${command} "$@"`, 'editor', ...files], { stdio: [own, own, own], env: { ...env } })
    child.once('error', () => resolve(undefined))
    child.once('exit', (code) => resolve(code ?? undefined))
  }).finally(() => {
    release()
    if (own !== given) closeSync(own)
  })
}

/** The terminal sends Ctrl-C to both programs; ours must not take it for a cancellation. */
function holdInterrupts(): () => void {
  const listeners = process.listeners('SIGINT')
  const ignore = () => {}
  process.removeAllListeners('SIGINT')
  process.on('SIGINT', ignore)
  return () => {
    process.off('SIGINT', ignore)
    for (const listener of listeners) process.on('SIGINT', listener)
  }
}
