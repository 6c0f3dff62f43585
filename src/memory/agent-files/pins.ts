/** Stores facts that a person pinned: the code adds them word for word to the system text, and no summary changes them. */

import { isObject, parseJson } from '../../kit/json.ts'
import type { Clock } from '../../runtime/port.ts'
import { readText } from './bounded-read.ts'
import { catchDiskError, type Disk, replaceFile } from './disk.ts'
import type { WithFolderLock } from './folder-lock.ts'

/** `number` counts from 1 in the order of pinning; `at` is ISO 8601 in UTC, '' when a hand-written line has none. */
export type Pin = { readonly number: number; readonly text: string; readonly at: string }

export type PinResult = { readonly ok: true; readonly pin: Pin } | { readonly ok: false; readonly message: string }

export type Pins = {
  /** `unreadable` counts lines that are not pins; they stay in the file. `trouble`: why the file cannot be used. */
  list(): { readonly pins: readonly Pin[]; readonly unreadable: number; readonly trouble?: string }
  add(text: string): PinResult
  remove(number: number): PinResult
}

export type PinsOptions = { readonly path: string; readonly disk: Disk; readonly now: Clock; readonly withFolderLock: WithFolderLock }

/** In bytes. Every request contains all pins, so their total must stay small. */
const longestPin = 4096
const longestAll = 32_768
const fileBound = 1 << 20

export function createPins({ path, disk, now, withFolderLock }: PinsOptions): Pins {
  function add(text: string): PinResult {
    return changing(() => {
      const { lines, trouble } = linesIn(path)
      const refusal = trouble ?? refusalOf(text, pinsOf(lines))
      if (refusal) return { ok: false, message: refusal }
      const pin = { number: pinsOf(lines).length + 1, text: trimmed(text), at: new Date(now()).toISOString() }
      write([...lines, JSON.stringify({ at: pin.at, text: pin.text })])
      return { ok: true, pin }
    })
  }

  function remove(number: number): PinResult {
    return changing(() => {
      const { lines, trouble } = linesIn(path)
      if (trouble) return { ok: false, message: trouble }
      const pin = pinsOf(lines).find((each) => each.number === number)
      if (!pin) return { ok: false, message: `pin ${number} does not exist; there are ${pinsOf(lines).length}` }
      const at = lines.findIndex((_, index) => pinsOf(lines.slice(0, index + 1)).length === number)
      write(lines.toSpliced(at, 1))
      return { ok: true, pin }
    })
  }

  function changing(step: () => PinResult): PinResult {
    return catchDiskError(() => withFolderLock(step))
  }

  function write(lines: readonly string[]): void {
    replaceFile(disk, path, Buffer.from(lines.map((line) => `${line}\n`).join('')))
  }

  return { list: () => pinsIn(path), add, remove }
}

/** Reads the pins of a file; it needs no lock. */
export function pinsIn(path: string): ReturnType<Pins['list']> {
  const { lines, trouble } = linesIn(path)
  const pins = pinsOf(lines)
  return { pins, unreadable: lines.length - pins.length, trouble }
}

function linesIn(path: string): { readonly lines: readonly string[]; readonly trouble?: string } {
  const found = readText(path, fileBound)
  if (found.state === 'missing') return { lines: [] }
  if (found.state === 'unusable') return { lines: [], trouble: `"${path}" cannot be read: ${found.why}` }
  if (!found.whole) return { lines: [], trouble: `"${path}" has ${found.bytes} bytes, more than ${fileBound}; shorten it` }
  return { lines: found.text.split('\n').filter((line) => line.trim() !== '') }
}

function pinsOf(lines: readonly string[]): Pin[] {
  return lines.flatMap((line) => pinIn(line) ?? []).map((pin, index) => ({ ...pin, number: index + 1 }))
}

function pinIn(line: string): Omit<Pin, 'number'> | undefined {
  const value = parseJson(line)
  if (!isObject(value) || typeof value.text !== 'string' || value.text.trim() === '') return undefined
  return { text: value.text, at: typeof value.at === 'string' ? value.at : '' }
}

function trimmed(text: string): string {
  return text.toWellFormed().replaceAll('\r\n', '\n').trim()
}

function refusalOf(text: string, pins: readonly Pin[]): string | undefined {
  const content = trimmed(text)
  const bytes = Buffer.byteLength(content)
  if (bytes === 0) return 'a pin needs some text'
  if (/[^\P{Cc}\n\t]/u.test(content)) return 'a pin holds text alone; this one has control characters'
  if (bytes > longestPin) return `a pin has at most ${longestPin} bytes, this one has ${bytes}; shorten it`
  const same = pins.find((pin) => pin.text === content)
  if (same) return `this is pinned already, as ${same.number}`
  const all = pins.reduce((sum, pin) => sum + Buffer.byteLength(pin.text), bytes)
  return all > longestAll ? `all pins together have at most ${longestAll} bytes, with this one ${all}; unpin something first` : undefined
}
