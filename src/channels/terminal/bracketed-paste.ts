/** Treats pasted text of several lines as one message: it keeps the line ends, and Enter after the paste sends the whole text. */

import type { Interface } from 'node:readline'
import type { Printer } from './printer.ts'

export type Paste = {
  /** @returns the text to send, or undefined while the line belongs to an unfinished paste. */
  whole(line: string): string | undefined
  /** Discards the pasted lines; returns true when there were some. */
  discard(): boolean
  close(): void
}

/** Asks the terminal to mark pasted text. A dumb terminal cannot, so there each line is a message. */
export function followPastes(editor: Interface, { write }: Pick<Printer, 'write'>): Paste {
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
    whole(line) {
      state.lines.push(line)
      return state.pasting ? undefined : state.lines.splice(0).join('\n')
    },
    discard() {
      state.pasting = false
      return state.lines.splice(0).length > 0
    },
    close() {
      process.stdin.off('keypress', onKey)
      end()
    },
  }
}
