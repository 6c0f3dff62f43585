/** Writes a log that stays small: when the file is full it becomes NAME.1, the one before NAME.2, and the oldest goes. */

import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

export type RotatingLogOptions = {
  readonly path: string
  /** The size of a full file. */
  readonly maxBytes?: number
  /** How many full files remain. */
  readonly keep?: number
}

export type RotatingLog = { write(text: string): void; close(): void }

/** Only its owner can read it. @throws the errno of a folder or file that cannot be made; a later failure to write is ignored */
export function openRotatingLog({ path, maxBytes = 5_000_000, keep = 5 }: RotatingLogOptions): RotatingLog {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const state = { fd: openSync(path, 'a', 0o600) }

  function rotate(): void {
    rmSync(`${path}.${keep}`, { force: true })
    for (let at = keep - 1; at >= 1; at--) moveIfThere(`${path}.${at}`, `${path}.${at + 1}`)
    moveIfThere(path, `${path}.1`)
    reopen()
  }

  return {
    write(text) {
      try {
        const size = fstatSync(state.fd).size
        if (size > 0 && size + Buffer.byteLength(text) > maxBytes) rotate()
        else if (wasMoved(path, state.fd)) reopen()
        writeSync(state.fd, text)
      } catch {
        // A full disk must not end the server.
      }
    },
    close: () => closeSync(state.fd),
  }

  /** Another program, such as logrotate, took the file away. */
  function reopen(): void {
    closeSync(state.fd)
    state.fd = openSync(path, 'a', 0o600)
  }
}

function wasMoved(path: string, fd: number): boolean {
  return statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino
}

function moveIfThere(from: string, to: string): void {
  if (statSync(from, { throwIfNoEntry: false })) renameSync(from, to)
}
