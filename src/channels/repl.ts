/** The conversation in a terminal: a line editor with history, where Ctrl-C cancels what runs and Ctrl-D leaves. */

import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import type { AskLine } from './ask.ts'

export type Repl = {
  /** Hands each line to `take`, one at a time, until it says exit or the input ends. */
  run(take: (line: string) => Promise<'on' | 'exit'>): Promise<void>
  readonly ask: AskLine
  close(): void
}

export type ReplOptions = {
  /** Lines typed, newest last, 0600. A line that begins with a space is not kept. */
  readonly historyPath: string
  readonly write: (text: string) => void
  readonly commands: readonly string[]
}

const historyKept = 1000

export function createRepl({ historyPath, write, commands }: ReplOptions): Repl {
  const state = { busy: false, asked: 0 }
  const editor = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: '> ',
    historySize: historyKept,
    history: readHistory(historyPath),
    completer: (line: string) => [line.startsWith('/') ? commands.filter((command) => command.startsWith(line)) : [], line],
  })
  editor.on('SIGINT', () => {
    if (state.busy) return void process.emit('SIGINT')
    write(state.asked++ > 0 ? '\n' : '\n(Ctrl-D or /exit leaves)\n')
    if (state.asked > 1) editor.close()
    else editor.prompt()
  })
  const lines = editor[Symbol.asyncIterator]()

  async function run(take: (line: string) => Promise<'on' | 'exit'>): Promise<void> {
    for (;;) {
      editor.prompt()
      const { value, done } = await lines.next()
      if (done) return write('\n')
      const line = value.trim()
      if (line === '') continue
      state.asked = 0
      if (!value.startsWith(' ')) keep(historyPath, line)
      state.busy = true
      const next = await take(line)
      state.busy = false
      if (next === 'exit') return
    }
  }

  const ask: AskLine = async (question, signal) => {
    write(question)
    const takenBack = new Promise<undefined>((resolve) => signal?.addEventListener('abort', () => resolve(undefined), { once: true }))
    return Promise.race([lines.next().then(({ value, done }) => (done ? undefined : value)), takenBack])
  }

  return { run, ask, close: () => editor.close() }
}

function readHistory(path: string): string[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8').split('\n').filter(Boolean).slice(-historyKept).reverse()
}

function keep(path: string, line: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  appendFileSync(path, `${line.replaceAll('\n', ' ')}\n`, { mode: 0o600 })
}
