/** Times whole processes: wall clock from spawn to exit, and the peak of their memory. */

export type Program = {
  readonly name: string
  readonly command: readonly string[]
  readonly env: Record<string, string>
  readonly cwd: string
}

export type Timing = { readonly median: number; readonly min: number }

/** Milliseconds of each program, run in turn (A B C A B C …), so that what else the machine does falls on all alike. */
export async function time(programs: readonly Program[], runs: number): Promise<Map<string, Timing>> {
  const all = new Map(programs.map((program): [string, number[]] => [program.name, []]))
  for (let run = 0; run < runs; run++) {
    for (const program of programs) all.get(program.name)?.push(await once(program))
  }
  return new Map([...all].map(([name, times]) => [name, summary(times)]))
}

async function once({ name, command, env, cwd }: Program): Promise<number> {
  const start = Bun.nanoseconds()
  const child = Bun.spawn([...command], { env, cwd, stdio: ['ignore', 'ignore', 'ignore'] })
  const code = await child.exited
  const ms = (Bun.nanoseconds() - start) / 1e6
  if (code !== 0) throw new Error(`${name} ended with exit code ${code}`)
  return ms
}

function summary(times: readonly number[]): Timing {
  const sorted = times.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1] ?? Number.NaN, min: sorted[0] ?? Number.NaN }
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
