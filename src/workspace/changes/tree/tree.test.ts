import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processorMs } from '../../../../test/support/processor-ms.ts'
import { openTree } from './tree.ts'

const DEEP = 700

/** The runtime's own removal needs half a minute for a deep tree. */
function stage() {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-tree-'))
  return { root, [Symbol.dispose]: () => void Bun.spawnSync(['rm', '-rf', root]) }
}

test('a deep tree costs a few calls a step, down and up again, and few open files', () => {
  using at = stage()
  using tree = openTree({ root: at.root, isPrivate: true })
  const paths = Array.from({ length: DEEP }, (_, depth) => Array.from({ length: depth + 1 }, () => 'd').join('/'))
  const began = processorMs()
  for (const path of [...paths, ...paths.toReversed()]) {
    tree.madeFolder(path)
    expect(tree.lstat(`${path}/none`)).toBeUndefined()
    tree.betweenSteps()
  }
  // One that opens each path from the root again needs millions of calls: many seconds.
  expect(processorMs() - began).toBeLessThan(4_000)
  expect(readdirSync('/proc/self/fd').length).toBeLessThan(250)
})

test('one step down a deep tree opens no more files than a process may have', () => {
  using at = stage()
  using made = openTree({ root: at.root, isPrivate: true })
  const path = Array.from({ length: DEEP }, () => 'd').join('/')
  const deepest = made.madeFolder(path)
  using fresh = openTree({ root: at.root, isPrivate: true })
  const before = readdirSync('/proc/self/fd').length
  const found = fresh.folder(path)
  expect(readdirSync('/proc/self/fd').length - before).toBeLessThan(60)
  expect(statSync(`/proc/self/fd/${found.fd}`).ino).toBe(statSync(`/proc/self/fd/${deepest.fd}`).ino)
})

test('the folders that were used last stay open', () => {
  using at = stage()
  using tree = openTree({ root: at.root, isPrivate: true })
  const first = tree.madeFolder('kept')
  for (let count = 0; count < 300; count++) {
    tree.madeFolder(`other-${count}`)
    tree.betweenSteps()
    expect(tree.folder('kept').fd).toBe(first.fd)
  }
})
