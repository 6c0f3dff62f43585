/** Reads a project's instructions for the model from AGENTS.md, or else CLAUDE.md, always as plain text. */

import { visibleLines } from '../kit/text.ts'
import type { Instruction } from '../runtime/event.ts'
import type { Workspace } from './contract.ts'
import { instructionBytes } from './instruction-file.ts'
import { utf8Prefix } from './lines.ts'

/** `bytes` is the part of the limit that the text uses. `cut` says what is missing. */
export type InstructionRead =
  | { readonly ok: true; readonly instruction: Instruction; readonly bytes: number; readonly cut?: string }
  | { readonly ok: false; readonly why: string }

/** Never throws. `room` is how many bytes are left; with none left the model only learns that the file exists. */
export function readInstruction(workspace: Pick<Workspace, 'readText'>, path: string, room: number): InstructionRead {
  const read = workspace.readText(path, { maxBytes: Math.max(room, 1) })
  if (!read.ok) return { ok: false, why: read.message }
  if (read.invalid) return { ok: false, why: `${JSON.stringify(path)} is not valid UTF-8` }
  const whole = visibleLines(read.text)
  const text = upTo(whole, room)
  const bytes = Buffer.byteLength(text)
  if (!read.more && text === whole) return { ok: true, instruction: { path, text }, bytes }
  const cut = `${path} has ${read.size} bytes; of all such files together ${instructionBytes} bytes are told, and the rest of this one is left out`
  return { ok: true, instruction: { path, text: `${text}${text.endsWith('\n') || text === '' ? '' : '\n'}[cut: ${cut}]` }, bytes, cut }
}

/** Cuts at the end of a line where there is one. */
function upTo(text: string, room: number): string {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= room) return text
  const kept = new TextDecoder().decode(utf8Prefix(bytes, room))
  return kept.slice(0, kept.lastIndexOf('\n') + 1) || kept
}
