/** Defines what a service runs, and what every kind of service manager can do with it. */

import { readFileSync, renameSync, writeFileSync } from 'node:fs'

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
  /** How often it was started again after it failed. */
  readonly restarts?: number
  /** What is wrong, in a sentence. */
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
  /** What else of this manager keeps the service from running as its user expects. */
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

/** @returns an empty text when there is no file, or none that can be read */
export function readUnit(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
