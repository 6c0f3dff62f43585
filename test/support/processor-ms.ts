/** Returns the processor time of this process in milliseconds: a limit in it holds on a busy machine, too. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
