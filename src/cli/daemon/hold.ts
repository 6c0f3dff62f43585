/** One daemon a folder of FIFOs: held by a lock that a killed holder cannot leave behind, and a note of whom it started. */

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../kit/json.ts'
import { isAlive, ownerOf } from '../../memory/owner.ts'
import { takeLock } from '../../memory/recall/lock.ts'
import { endGroup } from '../../service/supervise.ts'

export type Held =
  | {
      readonly ok: true
      /** Bridges that a killed predecessor left running, ended now. */
      readonly orphans: number
      /** A bridge runs now under this process. */
      note(name: string, pid: number): void
      release(): void
    }
  | { readonly ok: false; readonly message: string }

/** The folder must be there, and ours. */
export function hold(dir: string): Held {
  const [lockPath, notePath] = [join(dir, '.daemon.lock'), join(dir, '.daemon.pid')]
  const lock = takeLock(lockPath, 0)
  if (!lock) {
    const { pid } = readNote(notePath)
    return { ok: false, message: `another daemon serves "${dir}"${pid ? ` (pid ${pid})` : ''}; stop it, or choose another --fifo-dir` }
  }
  const orphans = endOrphans(notePath)
  const bridges = new Map<string, string>()
  const write = () => {
    writeFileSync(`${notePath}.new`, `${JSON.stringify({ pid: process.pid, bridges: Object.fromEntries(bridges) })}\n`, { mode: 0o600 })
    renameSync(`${notePath}.new`, notePath)
  }
  write()
  return {
    ok: true,
    orphans,
    note(name, pid) {
      bridges.set(name, ownerOf(pid))
      write()
    },
    release() {
      rmSync(notePath, { force: true })
      lock[Symbol.dispose]()
    },
  }
}

/** Told by number and start time, so that nobody else who has the number by now is ended. */
function endOrphans(path: string): number {
  const left = Object.values(readNote(path).bridges).filter((owner) => isAlive(owner))
  for (const owner of left) endGroup(Number(owner.split('@')[0]), 'SIGKILL')
  return left.length
}

type Note = { readonly pid?: number; readonly bridges: { readonly [name: string]: string } }

function readNote(path: string): Note {
  try {
    const note: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isObject(note)) return { bridges: {} }
    const bridges = isObject(note.bridges)
      ? Object.entries(note.bridges).filter((each): each is [string, string] => typeof each[1] === 'string')
      : []
    return { ...(typeof note.pid === 'number' ? { pid: note.pid } : {}), bridges: Object.fromEntries(bridges) }
  } catch {
    return { bridges: {} }
  }
}
