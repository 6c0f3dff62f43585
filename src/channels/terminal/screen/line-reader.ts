/**
 * Reads messages line by line, for dumb terminals and screen readers: the kernel edits the line, and nothing is drawn again. Ctrl-C cancels
 * the running turn and Ctrl-D leaves.
 */

import { Writable } from 'node:stream'
import type { Environment } from '../../../host/api.ts'
import { type AskPerson, createAskLine } from '../approval-prompt.ts'
import type { Printer } from '../printer.ts'
import { keep } from './history.ts'

export type Repl = {
  /** Passes each line to `take`, one at a time, until it returns exit or the input ends. */
  run(take: (line: string) => Promise<'on' | 'exit'>, first?: string): Promise<void>
  readonly ask: AskPerson
  close(): void
}

export type ReplOptions = {
  /** The history file: typed messages, newest last, mode 0600. Lines that begin with a space are not stored. */
  readonly historyPath: string
  readonly printer: Printer
  /** Names the person's editor. */
  readonly env: Environment
  /** Applied to each message before it is stored. */
  readonly redact: (text: string) => string
}

export function createLineReader({ historyPath, printer, env, redact }: ReplOptions): Repl {
  const ask = createAskLine(0, { env })
  const left = Promise.withResolvers<undefined>()
  const leave = () => left.resolve(undefined)
  const state = { interrupts: 0 }
  const interrupt = () => {
    if (state.interrupts++ > 0) return leave()
    printer.write('\n(Ctrl-D or /exit leaves)\n> ')
  }

  function nextLine(): Promise<string | undefined> {
    process.on('SIGINT', interrupt)
    return Promise.race([ask('> ', undefined, true), left.promise]).finally(() => process.off('SIGINT', interrupt))
  }

  async function run(take: (line: string) => Promise<'on' | 'exit'>, first?: string): Promise<void> {
    for (let given = first; ; given = undefined) {
      const raw = given ?? (await nextLine())
      if (raw === undefined) return
      if (raw.trim() === '') continue
      state.interrupts = 0
      if (!raw.startsWith(' ')) keep(historyPath, redact(raw.trim()))
      if ((await take(raw.trim())) === 'exit') return
    }
  }

  process.once('SIGHUP', leave)
  const close = () => {
    process.off('SIGHUP', leave)
    leave()
  }
  return { run, ask, close }
}

/** Returns stdout as line editors need it: a stream with a size, whose output goes through the printer. */
export function editorStream({ editor }: Pick<Printer, 'editor'>): Writable {
  const decoder = new TextDecoder()
  const stream = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      editor(decoder.decode(chunk, { stream: true }))
      done()
    },
  })
  const resized = () => void stream.emit('resize')
  process.stdout.on('resize', resized)
  stream.once('close', () => process.stdout.off('resize', resized))
  return Object.defineProperties(stream, {
    isTTY: { value: true },
    columns: { get: () => process.stdout.columns || 80 },
    rows: { get: () => process.stdout.rows || 24 },
  })
}
