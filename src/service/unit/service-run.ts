/** Defines what a service runs, and what every kind of service manager can do with it. */

import { renameSync, writeFileSync } from 'node:fs'

export type ServiceRun = {
  /** The program with its arguments; the program is an absolute path. */
  readonly argv: readonly [string, ...string[]]
  /** The whole environment besides what the service manager itself sets. */
  readonly env: { readonly [name: string]: string }
  /** The folder it starts in. */
  readonly folder: string
  /** Where its output goes when no service manager keeps it. */
  readonly logPath: string
}

export type ServiceState = {
  readonly installed: boolean
  readonly running: boolean
  readonly pid?: number
  /** Milliseconds since 1970. */
  readonly since?: number
  /** How often the manager restarted it after it failed. */
  readonly restarts?: number
  /** Says in a sentence what is wrong. */
  readonly problem?: string
}

export type ServiceHint = { readonly says: string; readonly remedy: string }

/** Each function rejects with an Error whose message says what failed and what to do. */
export type ServiceManager = {
  readonly kind: 'systemd' | 'launchd' | 'background'
  /** The file that tells the manager about us. */
  readonly file: string
  /** The text of that file. */
  text(run: ServiceRun): string
  /** The command line in that file; undefined when there is none that we wrote. */
  argv(): readonly string[] | undefined
  install(run: ServiceRun): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
  uninstall(): Promise<void>
  state(): Promise<ServiceState>
  /** Returns what else of this manager keeps the service from running as its user expects. */
  hints?(): Promise<readonly ServiceHint[]>
  /** The command that prints its log, `follow` until it is ended; a path when the log is a plain file. */
  log(options: { readonly lines: number; readonly follow: boolean }): { readonly argv: readonly string[] } | { readonly path: string }
}

/** How long the server may take to end its turns after SIGTERM, in seconds; a manager waits a little longer before it kills. */
export const stopSeconds = 10

/** Writes it whole or not at all. It is readable only by its owner: a service's environment can hold private paths. */
export function writeUnit(path: string, text: string): void {
  const next = `${path}.new-${process.pid}`
  writeFileSync(next, text, { mode: 0o600 })
  renameSync(next, path)
}

type ProgramResult = { readonly code: number; readonly stdout: string; readonly stderr: string }
export type RunProgram = (argv: readonly string[]) => Promise<ProgramResult>

/** In milliseconds: a service manager that hangs must not hang us. */
const patience = 30_000

/** Runs a program of a service manager. A program that does not exist ends with code 127. */
export function runProgram(env: { readonly [name: string]: string | undefined }): RunProgram {
  return async (argv) => {
    const [program = ''] = argv
    if (Bun.which(program, { PATH: env.PATH ?? '' }) === null) return { code: 127, stdout: '', stderr: `${program}: not found` }
    const child = Bun.spawn([...argv], { env: { ...env }, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', timeout: patience })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
    return { code: await child.exited, stdout, stderr }
  }
}

/** @throws Error with the command and its output, when it failed */
export async function mustRun(run: RunProgram, argv: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(argv)
  if (code === 0) return stdout
  throw new Error(`"${argv.join(' ')}" failed with exit code ${code}: ${(stderr || stdout).trim()}`)
}
