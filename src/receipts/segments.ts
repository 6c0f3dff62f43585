/** Lists the files of one chain: closed segments, oldest first, and the current log. */

import { statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { attempt } from '../kit/errors.ts'
import { namesIn } from '../kit/proc.ts'

/** For `tool_receipts.log` returns `tool_receipts.1.log`, `tool_receipts.2.log`, …; excludes the log itself. */
export function segmentsOf(log: string): string[] {
  const folder = dirname(log)
  const now = inodeOf(log)
  return numbered(log)
    .map(({ name }) => join(folder, name))
    .filter((path) => now === undefined || inodeOf(path) !== now)
}

/** Returns all files of the chain, in order. */
export function filesOf(log: string): string[] {
  return [...segmentsOf(log), log]
}

export function nextSegment(log: string): string {
  const last = numbered(log).at(-1)?.number ?? 0
  return join(dirname(log), nameOf(log, last + 1))
}

/** Returns hard links to the log itself that a crash during a rotation left. */
export function secondNames(log: string): string[] {
  const whole = new Set(segmentsOf(log))
  return numbered(log)
    .map(({ name }) => join(dirname(log), name))
    .filter((path) => !whole.has(path))
}

function numbered(log: string): { readonly name: string; readonly number: number }[] {
  return namesIn(dirname(log))
    .flatMap((name) => {
      const number = Number(/\.([1-9][0-9]{0,8})(\.[^.]*)?$/.exec(name)?.[1])
      return number > 0 && name === nameOf(log, number) ? [{ name, number }] : []
    })
    .sort((a, b) => a.number - b.number)
}

function nameOf(log: string, number: number): string {
  const name = basename(log)
  const dot = name.lastIndexOf('.')
  return dot > 0 ? `${name.slice(0, dot)}.${number}${name.slice(dot)}` : `${name}.${number}`
}

/** A path that cannot be resolved has no file; whoever opens the log says why. */
function inodeOf(path: string): number | undefined {
  return attempt(() => statSync(path).ino)
}
