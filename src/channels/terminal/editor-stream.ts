/** Provides stdout as line editors need it: a stream with a size, whose output goes through the printer. */

import { Writable } from 'node:stream'
import type { Printer } from './printer.ts'

export type EditorStream = Writable & { readonly isTTY: true; readonly columns: number; readonly rows: number }

/** `mayRedraw` returns whether a resize may redraw: not while an answer streams over the last edited line. */
export function editorStream({ editor }: Pick<Printer, 'editor'>, mayRedraw: () => boolean = () => true): EditorStream {
  const decoder = new TextDecoder()
  const stream = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      editor(decoder.decode(chunk, { stream: true }))
      done()
    },
  })
  const resized = () => void (mayRedraw() && stream.emit('resize'))
  process.stdout.on('resize', resized)
  stream.once('close', () => process.stdout.off('resize', resized))
  return Object.defineProperties(stream, {
    isTTY: { value: true },
    columns: { get: () => process.stdout.columns || 80 },
    rows: { get: () => process.stdout.rows || 24 },
  }) as EditorStream
}
