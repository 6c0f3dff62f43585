/** One daemon a folder of FIFOs: held by a lock that a killed holder cannot leave behind, and a note of whom it started. */

import { readFileSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../kit/json.ts'
import { FIFOS } from '../../kit/wire.ts'
import { takeLock } from '../../memory/agent-files/folder-lock.ts'
import { isAlive, ownerOf } from '../../memory/journal/process-owner.ts'
import { claim } from '../../service/fifo/claim.ts'
import { removeFifos } from '../../service/fifo/remove.ts'
import { isRead } from '../../service/in-use.ts'
import { endGroup } from '../../service/supervise.ts'

export type DaemonLock =
  | {
      readonly ok: true
      /** Bridges that a killed predecessor left running, ended now. */
      readonly orphans: number
      /** A bridge runs now under this process. */
      note(name: string, pid: number): void
      /** FIFOs that we made go too, unless somebody else listens there: who stays can go on with the next daemon. */
      release(): void
    }
  | { readonly ok: false; readonly message: string }

/** The folder must be there, and ours. `made`: its FIFOs are our work. */
export function hold(dir: string, { made }: { readonly made: boolean }): DaemonLock {
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

/** Whoever leaves removes the file: a lock on one that is no longer there counts for nothing. */
function lockOn(path: string): Disposable | undefined {
  for (;;) {
    const before = statSync(path, { throwIfNoEntry: false })?.ino
    const lock = takeLock(path, 0)
    if (!lock || statSync(path, { throwIfNoEntry: false })?.ino === before) return lock
    lock[Symbol.dispose]()
  }
}

function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir)
  } catch {
    // FIFOs that stay, or something else of somebody's.
  }
}

/** Told by number and start time, so that nobody else who has the number by now is ended; one without its start time is left alone. */
function endOrphans({ bridges }: Note): number {
  const left = [...bridges.values()].filter((owner) => !owner.endsWith('@0') && isAlive(owner))
  for (const owner of left) endGroup(Number(owner.split('@')[0]), 'SIGKILL')
  return left.length
}

type Note = { readonly pid?: number; readonly made: boolean; readonly bridges: ReadonlyMap<string, string> }

function writeNote(path: string, { bridges, ...note }: Note): void {
  writeFileSync(`${path}.new`, `${JSON.stringify({ ...note, bridges: Object.fromEntries(bridges) })}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** What is no note says nothing. */
function readNote(path: string): Note {
  try {
    const note: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isObject(note)) return nothing()
    const { pid, made, bridges } = note
    const owners = Object.entries(isObject(bridges) ? bridges : {}).filter((each): each is [string, string] => typeof each[1] === 'string')
    return { ...(typeof pid === 'number' ? { pid } : {}), made: made === true, bridges: new Map(owners) }
  } catch {
    return nothing()
  }
}

function nothing(): Note {
  return { made: false, bridges: new Map() }
}
