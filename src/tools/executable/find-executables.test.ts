import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder } from '../fixture.ts'
import { findExecutables } from './find-executables.ts'

const trusting = () => undefined

function folder() {
  const at = createFolder()
  const put = (name: string, mode: number, text = '#!/bin/sh\n') => {
    at.put(name, text)
    chmodSync(join(at.root, name), mode)
    return join(at.root, name)
  }
  return { ...at, put, [Symbol.dispose]: () => at[Symbol.dispose]() }
}

const refusals = (at: string, untrusted: (folder: string) => string | undefined = trusting) => {
  const finding = findExecutables({ at, untrusted })
  return finding.ok ? finding.refused.map(({ path, why }) => `${path.split('/').at(-1)}: ${why}`) : [finding.why]
}

test('a folder that is not there, and one like /usr/bin, is refused as a whole', () => {
  using at = folder()
  expect(refusals(join(at.root, 'none'))[0]).toEndWith('the folder does not exist')
  for (let n = 0; n <= 100; n++) at.put(`t${n}`, 0o755)
  expect(refusals(at.root)[0]).toContain('holds 101 executables, 100 are the limit')
})

test('what every user may write is refused: the file, its folder, the folder a link leads to', () => {
  using at = folder()
  at.put('open', 0o757)
  expect(refusals(at.root)).toEqual([`open: every user of this machine may write ${at.root}/open; run: chmod o-w ${at.root}/open`])
  mkdirSync(join(at.root, 'sub'))
  at.put('sub/tool', 0o755)
  mkdirSync(join(at.root, 'links'))
  symlinkSync('../sub/tool', join(at.root, 'links/tool'))
  expect(refusals(join(at.root, 'links'))).toEqual([])
  chmodSync(join(at.root, 'sub'), 0o777)
  expect(refusals(join(at.root, 'links'))[0]).toContain(`may write ${at.root}/sub;`)
  expect(refusals(join(at.root, 'sub'))[0]).toContain(`may write ${at.root}/sub;`)
  chmodSync(join(at.root, 'sub'), 0o1777)
  expect(refusals(join(at.root, 'sub'))).toEqual([])
})

test('trust is asked of where the name stands and of where a link leads', () => {
  using at = folder()
  for (const name of ['mine', 'theirs']) mkdirSync(join(at.root, name))
  at.put('mine/tool', 0o755)
  at.put('theirs/tool', 0o755)
  symlinkSync('../theirs/tool', join(at.root, 'mine/link'))
  symlinkSync('../mine/tool', join(at.root, 'theirs/link'))
  const untrusted = (folder: string) => (folder.endsWith('/theirs') ? 'not ours' : undefined)
  expect(refusals(join(at.root, 'mine'), untrusted)).toEqual(['link: not ours'])
  expect(refusals(join(at.root, 'theirs'), untrusted)).toEqual(['link: not ours', 'tool: not ours'])
})

test('a script that nobody may execute and a link that leads nowhere are said', () => {
  using at = folder()
  at.put('forgotten.sh', 0o644)
  symlinkSync('nowhere', join(at.root, 'dangling'))
  expect(refusals(at.root)).toEqual([
    'dangling: it leads nowhere',
    `forgotten.sh: it is a script but not executable; run: chmod +x ${at.root}/forgotten.sh`,
  ])
})

test('executables are found in the order of names; folders, hidden files, texts and pipes are passed over', () => {
  using at = folder()
  for (const name of ['b.sh', 'a']) at.put(name, 0o755)
  at.put('.hidden', 0o755)
  at.put('README.md', 0o644, 'text')
  mkdirSync(join(at.root, 'folder'), { mode: 0o755 })
  Bun.spawnSync(['mkfifo', '-m', '755', join(at.root, 'pipe')])
  const finding = findExecutables({ at: at.root, untrusted: trusting })
  expect(finding).toEqual({
    ok: true,
    found: ['a', 'b.sh'].map((name) => ({ path: join(at.root, name), real: join(at.root, name) })),
    refused: [],
  })
  expect(findExecutables({ at: join(at.root, 'a'), untrusted: trusting })).toMatchObject({
    ok: true,
    found: [{ path: join(at.root, 'a') }],
  })
})
