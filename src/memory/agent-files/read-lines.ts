/** Reads JSON-lines files that other processes may write, a crash may have cut short, and people may have edited. */

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { createLineSplitter, type Line } from '../../kit/lines.ts'

/** `value` is undefined for a line that is invalid JSON or longer than 64 MiB. Empty lines are skipped, but counted. */
export type JsonLine = { readonly number: number; readonly value: unknown }

const maxLineBytes = 64 * 1024 * 1024

/** Treats a missing file as empty. @throws errno errors */
export function* jsonLines(path: string): Generator<JsonLine> {
  let number = 0
  for (const line of textLines(path)) {
    number += 1
    if (!line.ok) yield { number, value: undefined }
    else if (line.text.trim() !== '') yield { number, value: parse(line.text) }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function* textLines(path: string): Generator<Line> {
  const file = openToRead(path)
  if (file === undefined) return
  try {
    const splitter = createLineSplitter(maxLineBytes)
    const buffer = new Uint8Array(65_536)
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer)) yield* splitter.push(buffer.subarray(0, count))
    const last = splitter.end()
    if (last) yield last
  } finally {
    closeSync(file)
  }
}

/** Refuses FIFOs and devices, because reading them might never end. */
function openToRead(path: string): number | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (fstatSync(file).isFile()) return file
    closeSync(file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  throw Object.assign(new Error(`EINVAL: "${path}" is no regular file`), { code: 'EINVAL', path, errno: 0, syscall: 'read' })
}
