import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppendResult, Checkpoint } from './contract.ts'
import { createHome, draft, type Home, mustAppend, pathsIn, required } from './fixture.ts'
import { readKey } from './key.ts'
import { createReceiptLog } from './ledger.ts'
import { verifyReceipts } from './verify/verify-chain.ts'

function failed(appended: AppendResult): string {
  return appended.ok ? 'it was appended' : `${appended.failure.code}: ${appended.failure.message}`
}

function valid(home: Home, checkpoint: Checkpoint): boolean {
  return verifyReceipts({ path: home.paths.log, headPath: home.paths.head, key: readKey(home.paths.key), checkpoint }).ok
}

const isRoot = process.getuid?.() === 0
const mayMount = isRoot && probeMount()
if (!mayMount) console.log('not run: full and read-only disks (needs root and mount)')

function mount(folder: string, options: string): boolean {
  return Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stderr: 'ignore' }).success
}

function probeMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-mount-'))
  const mounted = mount(folder, 'size=16k')
  if (mounted) Bun.spawnSync(['umount', folder])
  rmSync(folder, { recursive: true })
  return mounted
}

function onSmallDisk(body: (home: Home) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-small-'))
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  try {
    expect(mount(disk, 'size=32k')).toBe(true)
    body(createHome(disk))
  } finally {
    Bun.spawnSync(['umount', disk])
    rmSync(folder, { recursive: true })
  }
}

test.if(mayMount)('on a full disk the append fails, nothing is torn, and it goes on when there is room', () => {
  onSmallDisk((home) => {
    const ballast = join(home.folder, 'ballast')
    writeFileSync(ballast, 'x'.repeat(8000))
    let checkpoint = home.fill(3)
    const appendUntilFull = (): string => {
      for (let number = 0; number < 200; number += 1) {
        const appended = home.append([draft(number)], checkpoint)
        if (!appended.ok) return appended.failure.code
        checkpoint = required(appended.checkpoint)
      }
      return 'never full'
    }
    expect(appendUntilFull()).toBe('full')
    expect(statSync(home.paths.log).size).toBe(checkpoint.size)
    expect(valid(home, checkpoint)).toBe(true)
    rmSync(ballast)
    checkpoint = mustAppend(home.append, [draft(500)], checkpoint)
    expect(valid(home, checkpoint)).toBe(true)
  })
})

test.if(mayMount)('on a read-only disk the append fails and says so', () => {
  onSmallDisk((home) => {
    const checkpoint = home.fill(2)
    expect(Bun.spawnSync(['mount', '-o', 'remount,ro', home.folder]).success).toBe(true)
    expect(failed(home.append([draft(9)], checkpoint))).toStartWith('read_only: ')
    expect(valid(home, checkpoint)).toBe(true)
  })
})

test('in a folder that may not be written the append fails and says so', () => {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-ro-'))
  chmodSync(folder, 0o555)
  if (isRoot) process.seteuid?.(65534)
  try {
    expect(failed(createReceiptLog({ paths: pathsIn(folder) })([draft(0)], undefined))).toStartWith('unreadable: ')
  } finally {
    if (isRoot) process.seteuid?.(0)
    rmSync(folder, { recursive: true })
  }
})
