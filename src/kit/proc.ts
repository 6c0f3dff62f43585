/** What the system says of a process. */

/** The fields of /proc/PID/stat by the numbers of proc(5), from the 3rd on; 22 is when it started, in ticks since the boot. */
export function statFields(stat: string): (number: number) => string {
  // The 2nd is its name, in parentheses, and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (number) => fields[number - 3] ?? ''
}
