/** Tests that what is kept of a project's files spares reading them, and never hides a change. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createFactCache } from '../../discovery/structure/fact-cache.ts'
import { describeViolation, worsened } from '../../discovery/structure/judge.ts'
import { rulesOf } from '../../discovery/structure/project.fixture.ts'
import type { Change } from '../../runtime/changes.ts'
import { createChangeView } from '../../security/changes/change-view.ts'
import { createLook, isAsSeen } from '../../workspace/changes/look.ts'
import { projectOf } from './change-rules.ts'

const rules = rulesOf('[rules.no-cycles]\nno_cycles = true')

/** A chain of thirty files: f0 imports f1, and so on. The change makes the last one import the first one. */
function stage() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-facts-')))
  const [workspace, upper, file] = [join(root, 'w'), join(root, 'up'), join(root, 'kept', 'facts.json')]
  const put = (path: string, text: string, folder = workspace) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (let at = 0; at < 30; at++) put(`a/f${at}.ts`, at < 29 ? `import './f${at + 1}'` : '')
  put('a/f29.ts', `import './f0'`, upper)
  const changes: Change[] = [{ path: 'a/f29.ts', before: { kind: 'file', mode: 0o644 }, after: { kind: 'file', mode: 0o644 } }]

  /** Judges as a process of its own does. @returns how many texts it read, and the violations */
  function judge() {
    using look = createLook({ workspace, upper, changes })
    const texts = new Set<string>()
    const counting: typeof look = { ...look, read: (path, ...more) => texts.add(path) && look.read(path, ...more) }
    const [view, cache] = [createChangeView(changes, counting), createFactCache(file)]
    const [before, after] = [projectOf(workspace, view, 'before', cache), projectOf(workspace, view, 'after', cache)]
    const found = worsened(rules, { before, after, changes }).map(describeViolation)
    cache.save()
    return { texts: texts.size, found, readSet: look.readSet() }
  }
  /** Waits until no file counts as changed a moment ago. */
  async function settle() {
    const marks = () => {
      using look = createLook({ workspace, upper, changes })
      return JSON.stringify(readdirSync(join(workspace, 'a')).map((name) => look.mark?.(`a/${name}`)))
    }
    for (let seen = ''; seen !== marks(); await Bun.sleep(1)) seen = marks()
  }
  return { workspace, file, put, judge, settle, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}

test('a file that changed, was replaced or became a link since is read again', async () => {
  using at = stage()
  await at.settle()
  expect(at.judge().found).toHaveLength(1)
  at.put('a/f7.ts', '')
  const second = at.judge()
  expect([second.found, second.texts]).toEqual([[], 2])
  await at.settle()
  at.put('new.ts', `import './f8'`)
  renameSync(join(at.workspace, 'new.ts'), join(at.workspace, 'a/f7.ts'))
  expect(at.judge().found).toHaveLength(1)
  await at.settle()
  renameSync(join(at.workspace, 'a/f8.ts'), join(at.workspace, 'f8.ts'))
  symlinkSync('../g.ts', join(at.workspace, 'a/f8.ts'))
  at.put('g.ts', '')
  expect(at.judge().found).toEqual([])
})

test('the first judgement of another process reads only what the change names', async () => {
  using at = stage()
  await at.settle()
  const [first, second] = [at.judge(), at.judge()]
  expect([first.texts, second.texts]).toEqual([30, 1])
  expect(second.found).toEqual(first.found)
  expect(second.found).toEqual([expect.stringContaining('a/f29.ts:1 closes a cycle of imports')])
})

test('a judgement stands on every file that it used, also on those that it did not read', async () => {
  using at = stage()
  await at.settle()
  at.judge()
  const { readSet, texts } = at.judge()
  expect([texts, isAsSeen(readSet, at.workspace)]).toEqual([1, true])
  at.put('a/f12.ts', '')
  expect(isAsSeen(readSet, at.workspace)).toBe(false)
})
