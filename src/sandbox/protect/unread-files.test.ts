import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { securityRows } from '../../security/settings.ts'
import { confined, place } from '../fixture.ts'
import { findUnread } from './forbidden.ts'

const patterns = securityRows.forbidden_reads.default
const CANARY = 'canary-9f2'

function plant(workspace: string, ...paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true })
    writeFileSync(join(workspace, path), `${CANARY}\n`)
  }
}

test('finds the files at any depth, through links, and not among packages', () => {
  using at = place()
  plant(at.workspace, '.env', 'a/b/c/d/e/.env.local', 'a/.env.example', 'node_modules/x/.env', 'real/settings', 'certs/key.pem', '.env.d/x')
  symlinkSync('../real/settings', join(at.workspace, 'a/.env'))
  symlinkSync('/etc/passwd', join(at.workspace, 'a/id_rsa'))
  const { files, complete } = findUnread({ patterns, workspace: at.workspace, home: at.settings.home })
  expect(files.map((path) => path.slice(at.workspace.length + 1)).toSorted()).toEqual([
    '.env',
    'a/b/c/d/e/.env.local',
    'certs/key.pem',
    'real/settings',
  ])
  expect(complete).toBe(true)
  expect(findUnread({ patterns: [], workspace: at.workspace, home: at.settings.home }).files).toEqual([])
})

/** These ways showed the content of such files: by a command, and by a copy of them that a tool reads. */
const ways = [
  'grep -rn canary .',
  'find . -type f -exec cat {} +',
  'cat */.env .env a/*',
  'cp -r . ../tmp-copy 2>/dev/null; cp -r a y; cat y/.env y/.env.local',
  'ln .env z; cat z',
  'mv a moved; cat moved/.env',
  'tar cf - . 2>/dev/null | grep -a canary',
  'git init -q; git add -A; git diff --cached; git show :.env',
  'python3 -c "print(open(\'.env\').read())" || perl -pe 1 .env',
  'cat /proc/self/root/$PWD/.env; cat $PWD/../$(basename $PWD)/.env',
]

describe.each(['bubblewrap', 'landlock'] as const)('in %s no command reads them', (kind) => {
  test.if(needs('bwrap', 'git')).each(ways.map((way) => [way]))('%s', async (way) => {
    using box = await confined({ kind, forbiddenReads: patterns })
    plant(box.workspace, '.env', 'a/.env', 'a/.env.local', 'deep/er/id_rsa')
    const { stdout, stderr } = await box.run(way)
    expect(stdout + stderr).not.toContain(CANARY)
  })
})

test.if(needs('bwrap'))('a command reads the one that it makes itself; examples stay readable', async () => {
  using box = await confined({ forbiddenReads: patterns })
  plant(box.workspace, '.env.example')
  expect((await box.run('cat .env.example; cp .env.example .env && cat .env')).stdout).toBe(`${CANARY}\n${CANARY}\n`)
})

test.if(needs('bwrap'))('in a private view neither, and the files outside stay as they are', async () => {
  using box = await confined({ forbiddenReads: patterns })
  plant(box.workspace, '.env', 'a/.env')
  const { stdout, view } = await box.change('cat .env a/.env; echo x > a/.env; mv a b; cat b/.env')
  view.drop()
  expect(stdout).not.toContain(CANARY)
  expect(await Bun.file(join(box.workspace, 'a/.env')).text()).toBe(`${CANARY}\n`)
})

test('without the patterns a command reads them: the test above can fail', async () => {
  if (!needs('bwrap')) return
  using box = await confined()
  plant(box.workspace, '.env')
  expect((await box.run('cat .env')).stdout).toContain(CANARY)
})
