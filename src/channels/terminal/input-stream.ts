/** Text that was piped in: all of it, as UTF-8, with a bound. */

import { FailureError } from '../../host/failure.ts'

const maxBytes = 32 * 1024 * 1024
/** A pipe that says nothing for this long beside a -m message may be one that never will. */
const impatientMs = 3000

export type ReadOptions = {
  /** Wait for the end, however long it takes: there is nothing else to go by. */
  readonly patient: boolean
  readonly tell: (line: string) => void
}

/**
 * Waits for the end of stdin. With `patient: false` a pipe that stays silent is given up after three seconds, with a word about it, so
 * that a supervisor's forgotten pipe cannot hang a turn; while a neighbour in the pipeline has it open it is waited for. Invalid UTF-8
 * becomes U+FFFD.
 * @throws FailureError usage beyond 32 MiB
 */
export async function readStdin({ patient, tell }: ReadOptions): Promise<string> {
  const decoder = new TextDecoder()
  const reader = Bun.stdin.stream().getReader()
  let [text, bytes] = ['', 0]
  for (;;) {
    const piece = await (patient || bytes > 0 ? reader.read() : firstPiece(reader, tell))
    if (!piece?.value) break
    bytes += piece.value.length
    if (bytes > maxBytes)
      throw new FailureError('usage', `more than ${maxBytes / 1024 / 1024} MiB on stdin; pass a file for the agent to read instead`)
    text += decoder.decode(piece.value, { stream: true })
  }
  return text + decoder.decode()
}

type Reader = { read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array }> }

/** @returns undefined when nothing came and nobody is left who would send anything. */
async function firstPiece(reader: Reader, tell: ReadOptions['tell']) {
  const first = reader.read()
  for (let told = false; ; told = true) {
    const piece = await Promise.race([first, silence()])
    if (piece !== 'silence') return piece
    const { hasNeighbour } = await import('./pipe.ts')
    if (!hasNeighbour()) return void tell('note: stdin is open but silent; going on without it')
    if (!told) tell('note: waiting for the other end of the pipe; </dev/null goes on without it')
  }
}

function silence(): Promise<'silence'> {
  return new Promise((resolve) => setTimeout(() => resolve('silence'), impatientMs).unref())
}
