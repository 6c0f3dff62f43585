/** Reads facts of the system: processes from /proc, the entries of folders, the C library. */

import { type Dirent, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { attempt } from './errors.ts'

/** Reads /proc/PID/stat by the field numbers of proc(5), from the 3rd on; field 22 is the start time, in ticks since the boot. */
export function statFields(stat: string): (number: number) => string {
  // Field 2 is the process name in parentheses; it may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (number) => fields[number - 3] ?? ''
}

/** Returns the start time of a process in ticks since the boot; undefined when it does not exist, has ended or cannot be read. */
export function startTick(pid: number): string | undefined {
  try {
    const field = statFields(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return field(3) === 'Z' || field(3) === 'X' ? undefined : field(22)
  } catch {
    return undefined
  }
}

/** Opens the C library under the name of glibc, else of musl. @throws the error of `open` when neither is found */
export function withLibc<Symbols>(open: (name: string) => Symbols): Symbols {
  try {
    return open('libc.so.6')
  } catch {
    return open(`libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`)
  }
}

/** Finds the processes whose environment, as `NAME=VALUE` texts, fits; those of other users cannot be read. */
export function processesWith(fits: (variables: readonly string[]) => boolean): number[] {
  const variablesOf = (name: string) => attempt(() => readFileSync(`/proc/${name}/environ`, 'latin1').split('\0')) ?? []
  return namesIn('/proc').flatMap((name) => (/^\d+$/.test(name) && fits(variablesOf(name)) ? [Number(name)] : []))
}

/** Returns the text of a file; empty if it cannot be read. */
export function textIn(path: string): string {
  return attempt(() => readFileSync(path, 'utf8')) ?? ''
}

/** Returns the names in a folder; none if it cannot be read. */
export function namesIn(folder: string): string[] {
  return attempt(() => readdirSync(folder)) ?? []
}

/** Returns the entries of a folder with their kinds; none if it cannot be read. */
export function entriesIn(folder: string): Dirent[] {
  return attempt(() => readdirSync(folder, { withFileTypes: true })) ?? []
}

/** Returns the path without links; a path that does not exist, or whose folders may not be read, as it is. */
export function realOf(path: string): string {
  return attempt(() => realpathSync(path)) ?? path
}
