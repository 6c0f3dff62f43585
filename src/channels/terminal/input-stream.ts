/** Reads text piped to stdin: all of it, as UTF-8, up to a limit. */

import { fstatSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { FailureError } from '../../host/failure.ts'
import { attempt, errnoOf } from '../../kit/errors.ts'

const maxBytes = 32 * 1024 * 1024
/** A pipe that is silent for this long beside a -m message may stay silent for ever. */
const impatientMs = 3000

export type ReadOptions = {
  /** True: wait for the end without a time limit, because stdin is the only input. */
  readonly patient: boolean
  readonly tell: (line: string) => void
  /** Returns the text for a stdin that has none, such as a picture. Absent: that is an error. */
  readonly binary?: ((bytes: Uint8Array) => Promise<string>) | undefined
}

/**
 * Waits for the end of stdin. With `patient: false` it gives up a silent pipe after three seconds with a note, so that a supervisor's
 * forgotten pipe cannot block a turn; while another process of the pipeline can write into it, it waits.
 * @throws FailureError `usage` beyond 32 MiB, and for what is not text
 */
export async function readStdin({ patient, tell, binary }: ReadOptions): Promise<string> {
  const pieces = stdinPieces()
  const read: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const piece = await (patient || bytes > 0 ? pieces.next() : firstPiece(pieces, tell))
    if (!piece?.value) break
    bytes += piece.value.length
    if (bytes > maxBytes)
      throw new FailureError('usage', `more than ${maxBytes / 1024 / 1024} MiB on stdin; pass a file for the agent to read instead`)
    read.push(piece.value)
  }
  const whole = Buffer.concat(read)
  return binary ? (textOf(whole) ?? (await binary(whole))) : (decoded(whole) ?? refuseBinary())
}

/** Returns undefined for what is not UTF-8 text. A text has no NUL in its first 8,000 bytes, as in git. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, 8000).includes(0)) return undefined
  return decoded(bytes)
}

function decoded(bytes: Uint8Array): string | undefined {
  return attempt(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes))
}

function refuseBinary(): never {
  const advice = 'convert it (iconv -f latin1 -t utf-8), or let the agent read the file itself'
  throw new FailureError('usage', `stdin is not UTF-8 text, so nothing was sent; ${advice}`)
}

/** Yields the bytes of stdin from where it stands: a file that a shell has read in part continues there, and its position advances. */
export async function* stdinPieces(): AsyncGenerator<Uint8Array, void> {
  // Bun's own stream reads a file from its beginning.
  if (!fstatSync(0).isFile()) return yield* Bun.stdin.stream()
  for (;;) {
    const piece = nextOfFile()
    if (piece.length === 0) return
    yield piece
  }
}

function nextOfFile(): Uint8Array {
  const bytes = new Uint8Array(65_536)
  try {
    return bytes.subarray(0, readSync(0, bytes))
  } catch (error) {
    throw new FailureError('error', `stdin cannot be read (${errnoOf(error)}); pass a file that is open for reading, or </dev/null`)
  }
}

/** @returns undefined when nothing arrived and no process is left that could send anything. */
async function firstPiece(pieces: AsyncGenerator<Uint8Array, void>, tell: ReadOptions['tell']) {
  const first = pieces.next()
  for (let notified = false; ; notified = true) {
    const piece = await Promise.race([first, silence()])
    if (piece !== 'silence') return piece
    if (!hasNeighbour()) return void tell('note: stdin is open but silent; continuing without it')
    if (!notified) tell('note: waiting for the other end of the pipe; </dev/null continues without it')
  }
}

function silence(): Promise<'silence'> {
  return new Promise((resolve) => setTimeout(() => resolve('silence'), impatientMs).unref())
}

/**
 * Linux only, and it sees only processes of the same user. True when a process that is neither this one nor an ancestor can write into
 * the pipe of stdin: `slow | braidclaw`. False for a pipe that a supervisor holds and forgot, whoever else reads from it.
 */
function hasNeighbour(): boolean {
  const pipe = target('/proc/self/fd/0')
  if (pipe === undefined || !pipe.startsWith('pipe:')) return false
  const family = ancestors(process.pid)
  return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && !family.has(Number(pid)) && holds(pid, pipe))
}

function holds(pid: string, pipe: string): boolean {
  return (
    attempt(() => readdirSync(`/proc/${pid}/fd`).some((fd) => target(`/proc/${pid}/fd/${fd}`) === pipe && isWritable(pid, fd))) ?? false
  )
}

/** Reads the flags of the descriptor, which are octal; the last two bits say how it was opened. */
function isWritable(pid: string, fd: string): boolean {
  const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return (Number.parseInt(flags, 8) & 3) !== 0
}

function target(path: string): string | undefined {
  return attempt(() => readlinkSync(path))
}

/** Includes the process itself. */
function ancestors(pid: number): ReadonlySet<number> {
  const found = new Set<number>()
  for (let at = pid; at > 0 && !found.has(at); at = parentOf(at)) found.add(at)
  return found
}

/** Reads the fields after the command's name, which may contain any character: the state and the parent. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}
