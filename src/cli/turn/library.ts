/** What a program that calls us as a library needs in place of a command line: a silent context, and failures as values. */

import { printTo } from '../../channels/printer.ts'
import { wake } from '../../main.ts'
import type { Ending } from '../../runtime/event.ts'
import { createContext } from '../context.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { setUp } from '../setup/setup.ts'
import type { Animal, CliContext, Setup } from '../world.ts'

/** Where everything is found; absent: as on the command line. */
export type Surroundings = {
  /** Default: BRAIDCLAW_HOME or ~/.braidclaw. */
  readonly home?: string
  /** Where the tools work; default: the configured one. */
  readonly workspace?: string
  /** Instead of the process's own; API keys are looked up here. */
  readonly env?: Readonly<Partial<Record<string, string>>>
  /** Log lines, redacted; default: none. */
  readonly log?: (line: string) => void
}

export const unended: Ending = { stop: 'error', code: 'error', message: 'the run ended without an ending' }

export function setUpFor({ workspace, ...around }: Surroundings, flags: { readonly model?: string; readonly agent?: string }): Setup {
  return setUp(silentContext(around), { workspace, ...flags })
}

/** Nothing of ours goes to the streams of a program that is not ours. */
export function silentContext({ home, env = process.env, log }: Omit<Surroundings, 'workspace'>): CliContext {
  const base = createContext({ ...env, ...(home ? { BRAIDCLAW_HOME: home } : {}) }, wake)
  const silent = printTo((line) => log?.(line), true)
  return { ...base, process: { ...base.process, stdout: silent, stderr: silent } }
}

export async function withAnimal<T>(animal: Animal, use: (animal: Animal) => Promise<T>): Promise<T> {
  try {
    return await use(animal)
  } finally {
    animal.close()
  }
}

type Failure = { readonly code: keyof typeof exitCodes; readonly message: string }

/** What would end a command with a sentence is a value here. */
export async function asValue<T>(step: () => Promise<T>, failed: (failure: Failure) => T): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (error instanceof CliExit) return failed({ code: nameOf(error.code), message: error.message.replace(/^error: /, '') })
    throw error
  }
}

function nameOf(code: number): keyof typeof exitCodes {
  const names = Object.keys(exitCodes).filter((name): name is keyof typeof exitCodes => name in exitCodes)
  return names.find((name) => exitCodes[name] === code) ?? 'error'
}
