import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Check } from './contract.ts'
import { createFixture, type Fixture, insideOnly } from './fixture.ts'
import { openWorkspace } from './workspace.ts'

/** Swaps `d` for a symbolic link to the outside folder and back, as fast as it can, until it is killed. */
const adversary = `
  import { renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
  const [root, outside] = process.argv.slice(-2)
  process.chdir(root)
  console.log('ready')
  for (;;) {
    renameSync('d', 'aside')
    try { symlinkSync(outside, 'd'); unlinkSync('d') } catch { rmSync('d', { recursive: true, force: true }) }
    for (;;) try { renameSync('aside', 'd'); break } catch { rmSync('d', { recursive: true, force: true }) }
  }`

/** Repeats `attempt` while the adversary runs, for about half a second, or longer until both results were seen. */
async function race({ root, outside }: Fixture, attempt: () => 'served' | 'refused'): Promise<{ served: number; refused: number }> {
  const child = Bun.spawn([process.execPath, '-e', adversary, root, outside], { stdout: 'pipe' })
  await child.stdout.getReader().read()
  const seen = { served: 0, refused: 0 }
  const start = Bun.nanoseconds()
  const enough = () => Bun.nanoseconds() - start > 5e8 && seen.served > 0 && seen.refused > 0
  while (!enough() && Bun.nanoseconds() - start < 8e9) seen[attempt()]++
  child.kill('SIGKILL')
  await child.exited
  return seen
}

/** A gate that lets the adversary act during its nth call, so that each gap between check and use is certainly hit. */
function interfering(root: string, nth: number, act: () => void): Check {
  const honest = insideOnly(root)
  let asked = 0
  return (path, access) => {
    const verdict = honest(path, access)
    if (++asked === nth) act()
    return verdict
  }
}

describe('an adversary who acts in the gap after any one check', () => {
  for (const path of ['d/secret.txt', 'd/new.txt', 'd/a/b/c/f.txt', 'd/sub/f.txt'])
    for (const swapped of ['d', 'd/a', 'd/sub'])
      test(`cannot lead a write to ${path} outside by swapping ${swapped}`, () => {
        for (let nth = 1; nth <= 8; nth++) {
          using fixture = createFixture()
          const { root, outside } = fixture
          mkdirSync(join(root, 'd/sub'), { recursive: true })
          writeFileSync(join(root, 'd/secret.txt'), 'INSIDE')
          const swap = () => {
            rmSync(join(root, swapped), { recursive: true, force: true })
            symlinkSync(outside, join(root, swapped))
          }
          openWorkspace({ root, check: interfering(root, nth, swap) }).writeText(path, 'ESCAPED')
          expect(readdirSync(outside)).toEqual(['secret.txt'])
          expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('OUTSIDE')
        }
      })

  test('cannot lead a read outside', () => {
    for (let nth = 1; nth <= 4; nth++) {
      using fixture = createFixture()
      const { root, outside } = fixture
      mkdirSync(join(root, 'd'))
      writeFileSync(join(root, 'd/secret.txt'), 'INSIDE')
      const swap = () => {
        rmSync(join(root, 'd'), { recursive: true })
        symlinkSync(outside, join(root, 'd'))
      }
      const answer = openWorkspace({ root, check: interfering(root, nth, swap) }).readText('d/secret.txt', { maxBytes: 100 })
      expect(answer.ok && answer.text).not.toBe('OUTSIDE')
    }
  })
})

describe('beside a process that swaps a folder for a link to the outside', () => {
  test('no read ever shows what is outside', async () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    mkdirSync(join(root, 'd'))
    writeFileSync(join(root, 'd/secret.txt'), 'INSIDE')
    let escapes = 0
    const seen = await race(fixture, () => {
      const answer = workspace.readText('d/secret.txt', { maxBytes: 100 })
      if (answer.ok && answer.text !== 'INSIDE') escapes++
      return answer.ok ? 'served' : 'refused'
    })
    expect(escapes).toBe(0)
    expect(seen.served).toBeGreaterThan(0)
    expect(seen.refused).toBeGreaterThan(0)
  })

  test('no write, new folder or temporary file ever lands outside', async () => {
    using fixture = createFixture()
    const { workspace, root, outside } = fixture
    mkdirSync(join(root, 'd'))
    let count = 0
    await race(fixture, () => {
      const path = count++ % 2 === 0 ? 'd/secret.txt' : `d/new${count}/deep/f`
      return workspace.writeText(path, 'ESCAPED').ok ? 'served' : 'refused'
    })
    expect(readdirSync(outside)).toEqual(['secret.txt'])
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('OUTSIDE')
  })

  test('no walk or list names what is outside', async () => {
    using fixture = createFixture()
    const { workspace, root, outside } = fixture
    mkdirSync(join(root, 'd'))
    writeFileSync(join(root, 'd/mine'), 'x')
    mkdirSync(join(outside, 'deep'))
    writeFileSync(join(outside, 'deep/OUTSIDE'), 'x')
    let escapes = 0
    await race(fixture, () => {
      const names = [...workspace.walk('.')]
      const listed = workspace.list('d', { depth: 3, maxEntries: 100 })
      const all = [...names, ...(listed.ok ? listed.entries.map((entry) => entry.path) : [])]
      if (all.some((name) => name.includes('secret') || name.includes('OUTSIDE'))) escapes++
      return listed.ok ? 'served' : 'refused'
    })
    expect(escapes).toBe(0)
  })
})
