/** Follows a log file as `tail -F` does: waits for it, shows its end, goes on with what is appended, and with the next file of that name. */

import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'

export type FollowOptions = {
  readonly path: string
  readonly signal: AbortSignal
  /** Receives decoded text, in order. */
  readonly show: (text: string) => void
  /** Receives notes of ours: the file is awaited, was replaced, cannot be read. */
  readonly note: (text: string) => void
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
}

/** How much of a log that is there already is shown, in bytes. */
const shownAtFirst = 32_768
const chunkBytes = 65_536
const everyMs = 250

type Open = { readonly file: number; readonly inode: number; position: number; readonly decoder: TextDecoder }

export async function followLog({ path, signal, show, note, pause }: FollowOptions): Promise<void> {
  let open: Open | undefined
  let said = ''
  const sayOnce = (text: string) => {
    if (text !== said) note(text)
    said = text
  }
  for (let isFirst = true; !signal.aborted; await pause(everyMs, signal)) {
    if (open && wasReplaced(open, path)) {
      drain(open, show)
      closeSync(open.file)
      open = undefined
      sayOnce('the log begins anew')
    }
    if (!open) {
      const opened = openLog(path, isFirst)
      if (typeof opened === 'string') sayOnce(opened)
      else {
        open = opened
        said = ''
      }
      isFirst &&= typeof opened !== 'string'
    }
    if (open) drain(open, show)
    isFirst = false
  }
  if (open) closeSync(open.file)
}

/** A link or a FIFO that an agent puts into the folder is not opened. @returns why it cannot be followed */
function openLog(path: string, atEnd: boolean): Open | string {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { size, ino } = fstatSync(file)
    if (fstatSync(file).isFile()) return { file, inode: ino, position: atEnd ? beginning(file, size) : 0, decoder: new TextDecoder() }
    closeSync(file)
    return `"${path}" is no regular file, so it is not shown`
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return code === 'ENOENT' ? `waiting for ${path}` : `"${path}" cannot be shown: ${code}`
  }
}

/** Returns where the first whole line of the shown end begins. */
function beginning(file: number, size: number): number {
  if (size <= shownAtFirst) return 0
  const from = size - shownAtFirst
  const bytes = new Uint8Array(shownAtFirst)
  const newline = bytes.subarray(0, readSync(file, bytes, 0, shownAtFirst, from)).indexOf(10)
  return newline < 0 ? from : from + newline + 1
}

function wasReplaced({ file, inode, position }: Open, path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? false : found.ino !== inode || fstatSync(file).size < position
}

function drain(open: Open, show: (text: string) => void): void {
  const bytes = new Uint8Array(chunkBytes)
  for (;;) {
    const length = readSync(open.file, bytes, 0, chunkBytes, open.position)
    if (length === 0) return
    open.position += length
    show(open.decoder.decode(bytes.subarray(0, length), { stream: true }))
  }
}
