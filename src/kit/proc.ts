/** Reads process facts from /proc. */

import { readFileSync } from 'node:fs'

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
