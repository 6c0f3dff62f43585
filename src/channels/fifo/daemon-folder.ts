/** Determines the folder of the six FIFOs, creates them, and allows one daemon per folder. */

import { closeSync, constants, lstatSync, openSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { FailureError } from '../../host/failure.ts'
import { attempt, succeeds } from '../../kit/errors.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { textIn } from '../../kit/proc.ts'
import { FIFOS } from '../../kit/wire.ts'
import { takeLock } from '../../memory/agent-files/folder-lock.ts'
import { isAlive, ownerOf } from '../../memory/journal/process-owner.ts'
import { claim, createFifos } from '../../service/fifo/fifo-folder.ts'
import { endGroup } from '../../service/supervise.ts'
import type { CliContext } from '../terminal/context.ts'

export const usualFolder = '/tmp/planckclaw'

/** Returns an absolute path. */
export function fifoFolder({ cwd, env }: CliContext, named: string | undefined): string {
  return resolve(cwd, named ?? (env.PLANCKCLAW_FIFOS || usualFolder))
}

/** @throws FailureError `error` when they cannot be created or are not ours */
export async function makeFifos(dir: string): Promise<void> {
  const created = await createFifos(dir)
  if (!created.ok) throw new FailureError('error', created.message)
}

export type DaemonLock =
  | {
      readonly ok: true
      /** The number of bridges that a killed predecessor left running and that were ended now. */
      readonly orphans: number
      /** Records that a bridge runs under this process. */
      note(name: string, pid: number): void
      /**
       * Releases the lock, and removes the FIFOs that we made unless another process still reads them: such a process can then continue
       * with the next daemon.
       */
      release(): void
    }
  | { readonly ok: false; readonly message: string }

/**
 * Allows one daemon per folder: the kernel releases its lock when it is killed, and a note lists the bridges it started. The folder must exist
 * and belong to us. `made`: this process created the FIFOs.
 */
export function lockFolder(dir: string, { made }: { readonly made: boolean }): DaemonLock {
  const [lockPath, notePath] = [join(dir, '.daemon.lock'), join(dir, '.daemon.pid')]
  const lock = lockOn(lockPath)
  const left = readNote(notePath)
  if (!lock)
    return {
      ok: false,
      message: `another daemon serves "${dir}"${left.pid ? ` (pid ${left.pid})` : ''}; stop it, or choose another --fifo-dir`,
    }
  const claimed = claim(dir)
  if (!claimed) {
    lock[Symbol.dispose]()
    return { ok: false, message: `another agent serves "${dir}"; stop it, or choose another --fifo-dir` }
  }
  const orphans = endOrphans(left)
  const note = { pid: process.pid, made: made || left.made, bridges: new Map<string, string>() }
  writeNote(notePath, note)
  return {
    ok: true,
    orphans,
    note(name, pid) {
      note.bridges.set(name, ownerOf(pid))
      writeNote(notePath, note)
    },
    release() {
      if (note.made && !FIFOS.some((name) => isRead(join(dir, name)))) removeFifos(dir)
      rmSync(claimed, { force: true })
      rmSync(notePath, { force: true })
      rmSync(lockPath, { force: true })
      lock[Symbol.dispose]()
      removeIfEmpty(dir)
    },
  }
}

/** A leaving daemon removes the file, so a lock on a file that is no longer at this path does not count. */
function lockOn(path: string): Disposable | undefined {
  for (;;) {
    const before = statSync(path, { throwIfNoEntry: false })?.ino
    const lock = takeLock(path, 0)
    if (!lock || statSync(path, { throwIfNoEntry: false })?.ino === before) return lock
    lock[Symbol.dispose]()
  }
}

/** Removes our own FIFOs, then the folder if it is empty. A bridge that has a FIFO open keeps it, and receives nothing from then on. */
export function removeFifos(dir: string): void {
  for (const path of FIFOS.map((name) => join(dir, name))) {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isFIFO() && found.uid === process.geteuid?.()) rmSync(path, { force: true })
  }
  removeIfEmpty(dir)
}

/** FIFOs that remain, or files of another program, keep it. */
function removeIfEmpty(dir: string): void {
  attempt(() => rmdirSync(dir))
}

/**
 * Identifies orphans by pid and start time, so that no other process with the same pid is ended; an entry without a start time is left
 * alone.
 */
function endOrphans({ bridges }: DaemonNote): number {
  const left = [...bridges.values()].filter((owner) => !owner.endsWith('@0') && isAlive(owner))
  for (const owner of left) endGroup(Number(owner.split('@')[0]), 'SIGKILL')
  return left.length
}

type DaemonNote = { readonly pid?: number; readonly made: boolean; readonly bridges: ReadonlyMap<string, string> }

function writeNote(path: string, { bridges, ...note }: DaemonNote): void {
  writeFileSync(`${path}.new`, `${JSON.stringify({ ...note, bridges: Object.fromEntries(bridges) })}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Treats a malformed note as an empty one. */
function readNote(path: string): DaemonNote {
  const note = parseJson(textIn(path))
  const { pid, made, bridges } = isObject(note) ? note : {}
  const owners = Object.entries(isObject(bridges) ? bridges : {}).filter((each): each is [string, string] => typeof each[1] === 'string')
  return { pid: typeof pid === 'number' ? pid : undefined, made: made === true, bridges: new Map(owners) }
}

/** True if a process has the FIFO open for reading, or waits for a writer. False if nobody reads it, or if it does not exist. */
function isRead(path: string): boolean {
  const { O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  return succeeds(() => closeSync(openSync(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW)))
}
