/** A file system of a few hundred kilobytes under a temporary folder, to be filled up, made read-only and emptied. Needs root. */

import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type SmallDisk = Disposable & {
  readonly path: string
  /** Leaves this many bytes free, in whole pages; undefined takes the ballast away. */
  leave(bytes: number | undefined): void
  readOnly(on: boolean): void
}

export function smallDisk(kilobytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'braidclaw-disk-'))
  run(['mount', '-t', 'tmpfs', '-o', `size=${kilobytes}k,mode=700`, 'braidclaw-test', path])
  const ballast = join(path, 'ballast')
  const free = () => {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  }
  return {
    path,
    leave(bytes) {
      rmSync(ballast, { force: true })
      if (bytes !== undefined) writeFileSync(ballast, new Uint8Array(Math.max(0, free() - bytes)))
    },
    readOnly: (on) => run(['mount', '-o', `remount,${on ? 'ro' : 'rw'}`, path]),
    [Symbol.dispose]() {
      run(['umount', '-l', path])
      rmSync(path, { recursive: true, force: true })
    },
  }
}

/** A disk stays busy for a moment after the last program that used it: the sandbox that stood ready is being buried. */
function run(argv: string[], tries = 60): void {
  const { exitCode, stderr } = Bun.spawnSync(argv, { stdout: 'ignore', stderr: 'pipe' })
  if (exitCode !== 0 && tries > 0 && stderr.toString().includes('busy')) {
    Bun.sleepSync(50)
    run(argv, tries - 1)
  } else if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr.toString().trim()} (mounting a test disk needs root)`)
}
