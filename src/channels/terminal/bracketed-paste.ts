/** A pasted text of several lines is one message: its line ends are kept, and Enter after it sends the whole. */

import type { Interface } from 'node:readline'
import type { Printer } from './printer.ts'

export type Paste = {
  /** @returns what is sent, or undefined while the line belongs to a text that is still being pasted. */
  whole(line: string): string | undefined
  /** Throws the pasted lines away; true when there were some. */
  discard(): boolean
  close(): void
}

/** Asks the terminal to mark what is pasted. A dumb one is not asked: there each line is a message. */
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
  // Before the editor's own, for whom Ctrl-Z stops us.
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
