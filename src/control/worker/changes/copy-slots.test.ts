import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownerOf } from '../../../memory/journal/process-owner.ts'
import { removeLeftovers, removeOlderLeftovers, takeSlot } from './copy-slots.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-slots-'))
const other = Bun.spawn(['sleep', '60'])
afterAll(() => {
  other.kill()
  rmSync(folder, { recursive: true })
})
const ownedBy = (slot: string, owner: string) => writeFileSync(join(folder, `${slot}.owner`), owner)
const copies = () => readdirSync(folder).filter((name) => !name.includes('.owner'))

test('a slot of a living process is left to it, and one of a process that is gone is taken', () => {
  ownedBy('run-0', ownerOf(other.pid))
  ownedBy('run-1', `${other.pid}@1-boot`)
  expect(takeSlot(folder)).toBe(join(folder, 'run-1'))
  expect(takeSlot(folder)).toBe(join(folder, 'run-1'))
  expect(readdirSync(folder).sort()).toEqual(['run-0.owner', 'run-1.owner'])
})

test('only copies of processes that are gone are removed: no change set, and nothing that waits', async () => {
  const sets = ['RUN-001-TASK-001-12345678', 'waiting-TASK-002', `a1-${process.pid}-TASK-003`]
  for (const name of [...sets, 'run-0', 'run-7', 'a1-999999999', 'a1-999999999-TASK-004', 'a1-x-999999999']) mkdirSync(join(folder, name))
  await removeLeftovers(folder)
  await removeOlderLeftovers(folder, 'a1')
  expect(copies().sort()).toEqual([...sets, 'a1-x-999999999', 'run-0'].sort())
})
