/** The one way to stdout, stderr and the terminal: whatever text comes along is escaped, and only our own marks drive a terminal. */

import { createEscaper, escapeHidden } from '../../kit/escape.ts'
import { type Descriptor, openDescriptor } from './descriptor.ts'
import { isTerminal, mayShare } from './tty.ts'

/** Every sequence of our own that reaches a terminal outside of the line editor. */
const marks = {
  dim: '\u001b[2m',
  normal: '\u001b[22m',
  eraseLine: '\r\u001b[K',
  pasteOn: '\u001b[?2004h',
  pasteOff: '\u001b[?2004l',
} as const

export type Mark = { readonly mark: keyof typeof marks }
export type Printed = string | readonly (string | Mark)[]

export type Printer = {
  /** Words for people, and JSON, which stays equal when it is parsed: escaped wherever they go. */
  write(text: Printed): void
  /** What a program asked for, such as an answer: as it is to a pipe or a file, escaped to a terminal. */
  data(text: string): void
  /** The same in pieces; any other call ends the text. */
  stream(piece: string): void
  /** What `node:readline` draws: its cursor movements pass, everything else is escaped. */
  editor(text: string): void
}

/** Something else that draws on the terminal, such as the status line: it erases itself first and hears what was printed. */
export type Overlay = { erase(): void; printed(text: string): void }

export type DescriptorPrinter = Printer & Pick<Descriptor, 'closed' | 'failure'>

export function createPrinter(fd: number, overlay?: Overlay, descriptor: Descriptor = openDescriptor(fd)): DescriptorPrinter {
  const terminal = isTerminal(fd)
  const put = overlay && mayShare(fd) ? beside(overlay, descriptor.put) : descriptor.put
  return { ...printTo(put, terminal), closed: descriptor.closed, failure: descriptor.failure }
}

function beside({ erase, printed }: Overlay, put: (text: string) => void): (text: string) => void {
  return (text) => {
    erase()
    put(text)
    printed(text)
  }
}

/** `put` may also be a place that is no descriptor: a log of the caller's, say. */
export function printTo(put: (text: string) => void, terminal: boolean): Printer {
  const pieces = createEscaper(terminal ? escapeHidden : (text) => text)
  const say = (text: string) => {
    if (text !== '') put(text)
  }
  return {
    write: (text) => say(pieces.flush() + spelled(text)),
    data: (text) => say(pieces.flush() + (terminal ? escapeHidden(text) : text)),
    stream: (piece) => say(pieces.push(piece)),
    editor: (text) => say(pieces.flush() + text.split(movement).map(escapeUnlessMovement).join('')),
  }
}

/** Without the marks. */
export function wordsOf(text: Printed): string {
  return typeof text === 'string' ? text : text.filter((piece) => typeof piece === 'string').join('')
}

function spelled(text: Printed): string {
  if (typeof text === 'string') return escapeHidden(text)
  return text.map((piece) => (typeof piece === 'string' ? escapeHidden(piece) : marks[piece.mark])).join('')
}

/** What line editors move, erase and colour with; a lone carriage return goes to the beginning of the line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const movement = /(\u001b\[\d*(?:;\d*)*[A-HJKm]|\u001b\[\?25[hl]|\r)/

function escapeUnlessMovement(text: string, at: number): string {
  return at % 2 === 1 ? text : escapeHidden(text)
}
