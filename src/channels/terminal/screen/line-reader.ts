/** Reads lines with `node:readline`, for dumb terminals and screen readers; Ctrl-C cancels the running turn and Ctrl-D leaves. */

import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import type { Environment } from '../../../host/api.ts'
import { atEnd } from '../../../kit/errors.ts'
import { type AskPerson, runEditor } from '../approval-prompt.ts'
import { type Printed, type Printer, wordsOf } from '../printer.ts'
import { historySize, keep, readHistory } from './history.ts'

export type Repl = {
  /** Passes each line to `take`, one at a time, until it returns exit or the input ends. */
  run(take: (line: string) => Promise<'on' | 'exit'>, first?: string): Promise<void>
  readonly ask: AskPerson
  close(): void
}

/** Completes the word that ends at the cursor. `words` replace the text from `from` to the cursor. */
export type Completer = (line: string, cursor: number) => Promise<{ readonly from: number; readonly words: readonly string[] } | undefined>

export type ReplOptions = {
  /** The history file: typed lines, newest last, mode 0600. Lines that begin with a space are not stored. */
  readonly historyPath: string
  readonly printer: Printer
  readonly complete: Completer
  /** Names the person's editor. */
  readonly env: Environment
  /** Applied to each line before it is stored. */
  readonly redact: (text: string) => string
}

type LineReceiver = (line: string | undefined) => void

const prompt = '> '

export function createRepl({ historyPath, printer, complete, env, redact }: ReplOptions): Repl {
  const { write } = printer
  const typed: string[] = []
  const state: { busy: boolean; closed: boolean; interrupts: number; waiting?: LineReceiver; answer?: LineReceiver } = {
    busy: false,
    closed: false,
    interrupts: 0,
  }
  const output = editorStream(printer, () => !state.busy || state.answer !== undefined)
  const editor = createInterface({
    input: process.stdin,
    output,
    terminal: true,
    prompt,
    historySize: historySize,
    history: readHistory(historyPath)
      .toReversed()
      .map((entry) => entry.replaceAll('\n', ' ')),
    completer: (line: string, done: (error: null, found: [string[], string]) => void) =>
      void complete(line, line.length)
        .catch(() => undefined)
        .then((found) => done(null, [[...(found?.words ?? [])], line.slice(found?.from)])),
  })

  const paste = followPastes(editor, printer)
  /** A line answers the open question; without one it goes to the waiting reader of messages; otherwise it waits in a list. */
  editor.on('line', (raw) => {
    const line = paste.whole(raw)
    if (line === undefined) return
    const take = state.answer ?? state.waiting
    if (take) take(line)
    else typed.push(line)
  })
  /** After Ctrl-Z and fg the editor reads on only when it is resumed. */
  editor.on('SIGCONT', () => editor.resume())
  const leave = () => {
    if (state.closed) return
    state.closed = true
    paste.close()
    if (state.answer) write('\n')
    state.answer?.(undefined)
    state.waiting?.(undefined)
  }
  editor.on('close', leave)
  // When the terminal is gone, the editor fails to close (EIO) and does not report it.
  process.once('SIGHUP', leave)
  /** Answers are not messages, so the arrow keys do not recall them. */
  editor.on('history', (history: string[]) => void (state.answer && history.shift()))
  editor.on('SIGINT', () => {
    const typing = paste.discard() || editor.line !== ''
    if (state.busy) return void process.emit('SIGINT')
    if (!typing && state.interrupts++ > 0) return editor.close()
    discard(editor, write)
    if (!typing) write('(Ctrl-D or /exit leaves)\n')
    editor.prompt()
  })

  function nextLine(): Promise<string | undefined> {
    const [line] = typed.splice(0, 1)
    if (line !== undefined || state.closed) return Promise.resolve(line)
    return new Promise((resolve) => {
      state.waiting = (given) => {
        state.waiting = undefined
        resolve(given)
      }
    })
  }

  /** Takes `first` before the first line that is typed. */
  async function run(take: (line: string) => Promise<'on' | 'exit'>, first?: string): Promise<void> {
    if (first !== undefined) typed.unshift(first)
    for (;;) {
      if (!state.closed) editor.prompt()
      const raw = await nextLine()
      if (raw === undefined) return write('\n')
      const line = raw.trim()
      if (line === '') continue
      state.interrupts = 0
      if (!raw.startsWith(' ')) keep(historyPath, redact(line))
      state.busy = true
      const next = await take(line)
      state.busy = false
      if (next === 'exit') return
    }
  }

  function close(): void {
    process.off('SIGHUP', leave)
    output.destroy()
    try {
      editor.close()
    } catch {
      // The terminal is gone: there is nothing to restore.
    }
  }

  /** Only input typed after the question counts as its answer: lines typed ahead stay messages. */
  const ask = (question: Printed, signal?: AbortSignal): Promise<string | undefined> => {
    if (state.closed || signal?.aborted) return Promise.resolve(undefined)
    write(question)
    // A redraw of the line, such as after a resize, draws the end of the question again.
    editor.setPrompt(lastLineOf(question))
    return new Promise((resolve) => {
      const settle: LineReceiver = (line) => {
        state.answer = undefined
        editor.setPrompt(prompt)
        signal?.removeEventListener('abort', takeBack)
        resolve(line)
      }
      const takeBack = () => {
        paste.discard()
        discard(editor, write)
        settle(undefined)
      }
      state.answer = settle
      signal?.addEventListener('abort', takeBack, { once: true })
    })
  }

  /** Pauses the line editor until the other program ends. */
  async function edit(files: readonly string[]): Promise<number | undefined> {
    editor.pause()
    process.stdin.setRawMode(false)
    using _end = atEnd(() => {
      process.stdin.setRawMode(true)
      editor.resume()
    })
    return await runEditor({ files, env })
  }

  return { run, ask: Object.assign(ask, { edit }), close }
}

export function lastLineOf(question: Printed): string {
  const words = wordsOf(question)
  return words.slice(words.lastIndexOf('\n') + 1)
}

/** Discards the current line as a shell does: it stays on the screen, and the cursor moves to an empty line. */
function discard(editor: Interface, write: (text: string) => void): void {
  write('\n')
  if (editor.line === '') return
  editor.setPrompt('')
  editor.write(null, { ctrl: true, name: 'e' })
  editor.write(null, { ctrl: true, name: 'u' })
  editor.setPrompt(prompt)
}

/** Asks the terminal to mark pasted text. A dumb terminal cannot, so there each line is a message. */
function followPastes(editor: Interface, { write }: Pick<Printer, 'write'>) {
  const state: { pasting: boolean; lines: string[] } = { pasting: false, lines: [] }
  const marks = process.env.TERM !== 'dumb'
  const begin = () => void (marks && write([{ mark: 'pasteOn' }]))
  const end = () => void (marks && write([{ mark: 'pasteOff' }]))
  const onKey = (_: unknown, key?: { name?: string; ctrl?: boolean }) => {
    if (key?.name === 'paste-start') state.pasting = true
    if (key?.name === 'paste-end') state.pasting = false
    if (key?.name === 'z' && key.ctrl) end()
  }
  // Runs before the editor's own listener, which suspends the process on Ctrl-Z.
  process.stdin.prependListener('keypress', onKey)
  begin()
  editor.on('SIGCONT', begin)
  return {
    /** @returns the text to send, or undefined while the line belongs to an unfinished paste. */
    whole(line: string): string | undefined {
      state.lines.push(line)
      return state.pasting ? undefined : state.lines.splice(0).join('\n')
    },
    /** Discards the pasted lines; returns true when there were some. */
    discard(): boolean {
      state.pasting = false
      return state.lines.splice(0).length > 0
    },
    close() {
      process.stdin.off('keypress', onKey)
      end()
    },
  }
}

/** Stdout as line editors need it: a stream with a size, whose output goes through the printer. */
export type EditorStream = Writable & { readonly isTTY: true; readonly columns: number; readonly rows: number }

/** `mayRedraw` returns whether a resize may redraw: not while an answer streams over the last edited line. */
export function editorStream({ editor }: Pick<Printer, 'editor'>, mayRedraw: () => boolean = () => true): EditorStream {
  const decoder = new TextDecoder()
  const stream = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      editor(decoder.decode(chunk, { stream: true }))
      done()
    },
  })
  const resized = () => void (mayRedraw() && stream.emit('resize'))
  process.stdout.on('resize', resized)
  stream.once('close', () => process.stdout.off('resize', resized))
  return Object.defineProperties(stream, {
    isTTY: { value: true },
    columns: { get: () => process.stdout.columns || 80 },
    rows: { get: () => process.stdout.rows || 24 },
  }) as EditorStream
}
