/** Provides a folder with the six FIFOs and shell scripts as bridges for the tests of this folder, and cleans both up. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFifos } from './create-fifos.ts'

export type FifoFixture = {
  readonly dir: string
  path(name: string): string
  /** Starts a shell script in the folder; `$0` is its path. It is killed at the end of the test at the latest. */
  script(text: string): Script
  remove(): void
}

export type Script = { kill(): Promise<void>; readonly done: Promise<number>; stop(): void; go(): void }

export async function createFifoFixture(): Promise<FifoFixture> {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-fifo-'))
  const created = await createFifos(dir)
  if (!created.ok) throw new Error(created.message)
  const running = new Set<Bun.Subprocess>()

  function script(text: string): Script {
    const child = Bun.spawn(['sh', '-c', text], { cwd: dir, stdio: ['ignore', 'ignore', 'inherit'], detached: true })
    running.add(child)
    const signal = (name: NodeJS.Signals): void => {
      if (child.exitCode === null) process.kill(-child.pid, name)
    }
    return {
      done: child.exited,
      stop: () => signal('SIGSTOP'),
      go: () => signal('SIGCONT'),
      async kill() {
        signal('SIGKILL')
        await child.exited
      },
    }
  }

  return {
    dir,
    path: (name) => join(dir, name),
    script,
    remove() {
      for (const child of running) {
        try {
          process.kill(-child.pid, 'SIGKILL')
        } catch {
          // It has already ended.
        }
      }
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Returns user and system time of this process so far, in ms. */
export function cpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}
