/** Fits instruction files into the room that all of them share. */

import type { Instruction } from '../runtime/event.ts'

/** `size` is that of the file in bytes; `more`: it goes on after the text. */
export type InstructionText = { readonly path: string; readonly text: string; readonly size: number; readonly more: boolean }

type Room = { readonly room: number; readonly most: number }

/** `bytes` is the part of the limit that the text uses. `cut` says what is missing. */
export type FittedInstruction = { readonly instruction: Instruction; readonly bytes: number; readonly cut?: string }

/** Cuts the text at the end of a line, and says so in it; `room` bytes of `most` are left. */
export function fitInstruction({ path, text: whole, size, more }: InstructionText, { room, most }: Room): FittedInstruction {
  const text = upTo(whole, room)
  const bytes = Buffer.byteLength(text)
  if (!more && text === whole) return { instruction: { path, text }, bytes }
  const cut = `${path} has ${size} bytes; all such files together may have ${most} bytes, and the rest of this one is left out`
  return { instruction: { path, text: `${text}${text.endsWith('\n') || text === '' ? '' : '\n'}[cut: ${cut}]` }, bytes, cut }
}

function upTo(text: string, room: number): string {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= room) return text
  const prefix = new TextDecoder().decode(bytes.subarray(0, room), { stream: true })
  return prefix.slice(0, prefix.lastIndexOf('\n') + 1) || prefix
}
