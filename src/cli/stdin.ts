/** Text that was piped in: all of it, as UTF-8, with a bound. */

import { CliExit, exitCodes } from './exit.ts'

const maxBytes = 32 * 1024 * 1024
/** A pipe that says nothing for this long beside a -m message is taken for one that never will. */
const impatientMs = 3000

/**
 * Waits for the end of stdin. With `patient: false` a pipe that stays silent is given up after three seconds, so that a supervisor's
 * forgotten pipe cannot hang a turn. Invalid UTF-8 becomes U+FFFD.
 * @throws CliExit 2 beyond 32 MiB
 */
export async function readStdin({ patient }: { readonly patient: boolean }): Promise<string> {
  const decoder = new TextDecoder()
  const reader = Bun.stdin.stream().getReader()
  let [text, bytes] = ['', 0]
  for (;;) {
    const piece = await (patient || bytes > 0 ? reader.read() : Promise.race([reader.read(), silence()]))
    if (piece === 'silence' || piece.done) break
    bytes += piece.value.length
    if (bytes > maxBytes)
      throw new CliExit(
        exitCodes.usage,
        `error: more than ${maxBytes / 1024 / 1024} MiB on stdin; pass a file for the agent to read instead`,
      )
    text += decoder.decode(piece.value, { stream: true })
  }
  return text + decoder.decode()
}

function silence(): Promise<'silence'> {
  return new Promise((resolve) => setTimeout(() => resolve('silence'), impatientMs).unref())
}
