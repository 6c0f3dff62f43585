/** Asks the program of a runner for its version, for the report and the manifest. */

import type { ForeignRunner } from '../runners/runner.ts'

const longestMs = 10_000

/** Empty when the program says nothing usable. A command of the operator is not asked: it may do anything with `--version`. */
export async function programVersion(name: ForeignRunner['name'], path: string): Promise<{ readonly version?: string }> {
  if (name === 'command') return {}
  try {
    const env = { PATH: process.env.PATH ?? '' }
    const child = Bun.spawn([path, '--version'], {
      env,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: longestMs,
      killSignal: 'SIGKILL',
    })
    const text = await child.stdout.text()
    const version = /\d+\.\d+[\w.+-]*/.exec(text.slice(0, 1_000))?.[0]
    return version === undefined ? {} : { version }
  } catch {
    return {}
  }
}
