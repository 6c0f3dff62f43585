/** Runs a program of a service manager and returns what it printed. */

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string }
export type RunProgram = (argv: readonly string[]) => Promise<Ran>

/** In milliseconds: a service manager that hangs must not hang us. */
const patience = 30_000

/** A program that does not exist ends with code 127. */
export function runProgram(env: { readonly [name: string]: string | undefined }): RunProgram {
  return async (argv) => {
    const [program = ''] = argv
    if (Bun.which(program, { PATH: env.PATH ?? '' }) === null) return { code: 127, stdout: '', stderr: `${program}: not found` }
    const child = Bun.spawn([...argv], { env: { ...env }, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', timeout: patience })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
    return { code: await child.exited, stdout, stderr }
  }
}

/** @throws Error with the command and what it said, when it failed */
export async function mustRun(run: RunProgram, argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(argv)
  if (code === 0) return stdout
  throw new Error(`"${argv.join(' ')}" failed with exit code ${code}: ${(stderr || stdout).trim()}`)
}
