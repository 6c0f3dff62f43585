/** Reads process facts from /proc. */

/** Reads /proc/PID/stat by the field numbers of proc(5), from the 3rd on; field 22 is the start time, in ticks since the boot. */
export function statFields(stat: string): (number: number) => string {
  // Field 2 is the process name in parentheses; it may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (number) => fields[number - 3] ?? ''
}
