/** Times whole processes: wall clock from spawn to exit, and the peak of their memory. */

export type Program = {
  readonly name: string
  readonly command: readonly string[]
  readonly env: Record<string, string>
  readonly cwd: string
}

/** `times` are of one round each: the same place in two lists is the same moment of the machine. */
export type Timing = { readonly times: readonly number[]; readonly median: number; readonly min: number }

/** Milliseconds of each program without `waitMs`, run in turn, each round beginning with another one (A B C B C A C A B …). */
export async function time(programs: readonly Program[], rounds: number, waitMs = 0): Promise<Map<string, Timing>> {
  const all = new Map(programs.map((program): [string, number[]] => [program.name, []]))
  for (let round = 0; round < rounds; round++) {
    const first = round % programs.length
    for (const program of [...programs.slice(first), ...programs.slice(0, first)])
      all.get(program.name)?.push((await once(program)) - waitMs)
  }
  return new Map([...all].map(([name, times]) => [name, { times, median: median(times), min: Math.min(...times) }]))
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** The value that this share of all is not above. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

async function once({ name, command, env, cwd }: Program): Promise<number> {
  const start = Bun.nanoseconds()
  const child = Bun.spawn([...command], { env, cwd, stdio: ['ignore', 'ignore', 'ignore'] })
  const code = await child.exited
  const ms = (Bun.nanoseconds() - start) / 1e6
  if (code !== 0) throw new Error(`${name} ended with exit code ${code}`)
  return ms
}

/**
 * The largest peak of five runs, in MiB. Through `/usr/bin/time` where there is one: the kernel counts a child's peak from the memory
 * of whoever started it, and this process is itself larger than some that it measures.
 */
export async function peakMemory(program: Program): Promise<number> {
  const peaks: number[] = []
  for (let run = 0; run < 5; run++) peaks.push(await peakOnce(program))
  return Math.max(...peaks)
}

const GNU_TIME = '/usr/bin/time'

async function peakOnce({ command, env, cwd }: Program): Promise<number> {
  if (!(await Bun.file(GNU_TIME).exists())) {
    const child = Bun.spawn([...command], { env, cwd, stdio: ['ignore', 'ignore', 'ignore'] })
    await child.exited
    return (child.resourceUsage()?.maxRSS ?? Number.NaN) / 1048576
  }
  const child = Bun.spawn([GNU_TIME, '-f', '%M', ...command], { env, cwd, stdio: ['ignore', 'ignore', 'pipe'] })
  const [stderr] = await Promise.all([child.stderr.text(), child.exited])
  return Number(stderr.trim().split('\n').at(-1)) / 1024
}
