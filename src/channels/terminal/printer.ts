/** Writes all text to stdout, stderr and the terminal: it escapes control characters, so that only our own marks control a terminal. */

import { fstatSync, readFileSync } from 'node:fs'
import type { Environment } from '../../host/api.ts'
import type { ShownLine } from '../../host/changes/change-lines.ts'
import { createEscaper, escapeHidden } from '../../kit/escape.ts'
import { type Descriptor, missingDescriptor, openDescriptor } from './descriptor.ts'
import { isTerminal, mayShare } from './tty.ts'

/** Every control sequence of ours that reaches a terminal outside the line editor. */
const marks = {
  dim: '\u001b[2m',
  bold: '\u001b[1m',
  normal: '\u001b[22m',
  red: '\u001b[31m',
  green: '\u001b[32m',
  yellow: '\u001b[33m',
  blue: '\u001b[34m',
  magenta: '\u001b[35m',
  cyan: '\u001b[36m',
  uncoloured: '\u001b[39m',
  italic: '\u001b[3m',
  upright: '\u001b[23m',
  underline: '\u001b[4m',
  unlined: '\u001b[24m',
  strike: '\u001b[9m',
  unstruck: '\u001b[29m',
  eraseLine: '\r\u001b[K',
} as const

export type Mark = { readonly mark: keyof typeof marks }
export type Printed = string | readonly (string | Mark)[]

export type Printer = ReturnType<typeof printTo>

/** Another writer to the terminal, such as the status line: it erases itself before output and receives the printed text. */
export type Overlay = { erase(): void; printed(text: string): void }

type DescriptorPrinter = Printer & Pick<Descriptor, 'closed' | 'failure'>

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

/** `put` may also be a function that writes to no descriptor, such as a log of the caller. */
export function printTo(put: (text: string) => void, terminal: boolean) {
  const pieces = createEscaper(terminal ? escapeHidden : (text) => text)
  const say = (text: string) => {
    if (text !== '') put(text)
  }
  return {
    /** Writes text for people, and JSON, which parses to the same value: always escaped. */
    write: (text: Printed) => say(pieces.flush() + spelled(text)),
    /** Writes requested data, such as an answer: unchanged to a pipe or a file, escaped to a terminal. */
    data: (text: string) => say(pieces.flush() + (terminal ? escapeHidden(text) : text)),
    /** Writes data in pieces; any other call ends the text. */
    stream: (piece: string) => say(pieces.push(piece)),
    /** Writes what `node:readline` draws: its cursor movements pass, everything else is escaped. */
    editor: (text: string) => say(pieces.flush() + text.split(movement).map(escapeUnlessMovement).join('')),
  }
}

/** Returns the text without the marks. */
export function wordsOf(text: Printed): string {
  return typeof text === 'string' ? text : text.filter((piece) => typeof piece === 'string').join('')
}

/** Returns the text as a terminal gets it: escaped, with its marks. */
export function spelled(text: Printed): string {
  if (typeof text === 'string') return escapeHidden(text)
  return text.map((piece) => (typeof piece === 'string' ? escapeHidden(piece) : marks[piece.mark])).join('')
}

/** The sequences with which line editors move, erase and colour; a carriage return moves to the beginning of the line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const movement = /(\u001b\[\d*(?:;\d*)*[A-HJKm]|\u001b\[\?25[hl]|\r)/

function escapeUnlessMovement(text: string, at: number): string {
  return at % 2 === 1 ? text : escapeHidden(text)
}

/** Treats a closed stdout as if the first write had failed with EBADF. */
export function openStdout(overlay: Overlay): DescriptorPrinter {
  return isStandIn(1) ? createPrinter(1, overlay, missingDescriptor()) : createPrinter(1, overlay)
}

/** /dev/null on Linux: major 1, minor 3. */
const nullDevice = 0x103
/** O_CLOEXEC. */
const closeOnExec = 0o2000000

/**
 * Bun opens /dev/null in place of a closed standard descriptor, so a write would succeed. Bun opens it close-on-exec, which an inherited
 * descriptor cannot be, because it would not have survived the exec.
 */
function isStandIn(fd: number): boolean {
  try {
    if (fstatSync(fd).rdev !== nullDevice) return false
    const info = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')
    const at = info.indexOf('flags:')
    return (Number.parseInt(info.slice(at + 'flags:'.length), 8) & closeOnExec) !== 0
  } catch {
    return false
  }
}

/** Returns lines with their newlines; without `color` the same words without marks. */
export function coloured(lines: readonly ShownLine[], color: boolean): Exclude<Printed, string> {
  return lines.flatMap(({ tone, text }) => {
    const [begin, end] = (color ? toneMarks[tone] : undefined) ?? []
    return begin && end ? [{ mark: begin }, text, { mark: end }, '\n'] : [`${text}\n`]
  })
}

const toneMarks: { readonly [tone in ShownLine['tone']]?: readonly [Mark['mark'], Mark['mark']] } = {
  header: ['bold', 'normal'],
  place: ['cyan', 'uncoloured'],
  added: ['green', 'uncoloured'],
  removed: ['red', 'uncoloured'],
  note: ['dim', 'normal'],
}

/** Tells whether a terminal with this environment shows colours. */
export function wantsColor({ NO_COLOR, TERM }: Environment): boolean {
  return !NO_COLOR && TERM !== 'dumb'
}
