import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SandboxKind } from '../contract.ts'
import { confined, hasBubblewrap, type Running } from '../fixture.ts'
import { landlockVersion } from '../landlock/landlock-launch.ts'
import { openLibc } from '../libc.ts'
import { forbiddenIn, forbiddenOutside, withForbidden } from './forbidden.ts'

const content = 'forbidden-bytes'

/** `key` and `vault/` exist; `later` and `deep/later` do not; `gone/x` lies in a folder that does not exist either. */
async function box(kind: SandboxKind): Promise<Running & Disposable> {
  const state: { workspace?: string } = {}
  const paths = () => ['key', 'vault', 'later', 'deep/later', 'gone/x'].map((name) => join(state.workspace ?? '', name))
  const made = await confined({ kind, forbiddenPaths: paths })
  state.workspace = made.workspace
  mkdirSync(join(made.workspace, 'vault/inner'), { recursive: true })
  mkdirSync(join(made.workspace, 'deep'))
  for (const path of ['key', 'vault/k', 'vault/inner/k', '.hidden']) writeFileSync(join(made.workspace, path), `${content}\n`)
  for (const path of ['open.txt', 'deep/open.txt']) writeFileSync(join(made.workspace, path), 'open-bytes\n')
  writeFileSync(join(made.workspace, '.hidden'), 'open-bytes\n')
  symlinkSync('vault', join(made.workspace, 'link'))
  symlinkSync('key', join(made.workspace, 'file-link'))
  return made
}

const readers = [
  'cat key',
  'cat vault/k vault/inner/k',
  'grep -rn forbidden .',
  'find . -type f -exec cat {} +',
  'cat */k */*/k k*',
  'cp -r vault copy; cp key copy2; cat copy/* copy2',
  'cp -r . /tmp/all; cat /tmp/all/key /tmp/all/vault/k',
  'tar cf - . | strings',
  'cat link/k file-link',
  'ln key hard; cat hard',
  'mv key k2; cat k2',
  'mv vault v2; cat v2/k',
  'mkdir -p x && mv vault x/ && cat x/vault/k',
  'cat "$PWD/deep/../key"',
]

const kinds: readonly SandboxKind[] = [
  ...(hasBubblewrap() ? (['bubblewrap'] as const) : []),
  ...(landlockVersion(openLibc()) > 0 ? (['landlock'] as const) : []),
]
if (kinds.length < 2) console.warn(`forbidden paths are only tested with: ${kinds.join(', ') || 'no sandbox at all'}`)

describe.each(kinds)('a forbidden path in the workspace, %s', (kind) => {
  test('is read in no way, and stands as it was afterwards', async () => {
    using at = await box(kind)
    for (const script of readers) {
      const { stdout, stderr } = await at.run(script)
      expect([script, `${stdout}${stderr}`.includes(content)]).toEqual([script, false])
    }
    expect(['key', 'vault/k', 'vault/inner/k'].map((path) => readFileSync(join(at.workspace, path), 'utf8'))).toEqual(
      Array.from({ length: 3 }, () => `${content}\n`),
    )
    expect(['k2', 'v2', 'hard', 'x/vault'].filter((path) => existsSync(join(at.workspace, path)))).toEqual([])
  })

  test('cannot be written, removed or replaced', async () => {
    using at = await box(kind)
    await at.run('echo x > key; echo x > vault/k; rm -rf vault key; rm -f vault/k; mkdir -p vault/new; ln -sf open.txt key')
    expect(readFileSync(join(at.workspace, 'key'), 'utf8')).toBe(`${content}\n`)
    expect(readdirSync(join(at.workspace, 'vault')).toSorted()).toEqual(['inner', 'k'])
  })

  test('that does not exist yet cannot be made', async () => {
    using at = await box(kind)
    await at.run('echo x > later; mkdir later; echo x > deep/later; mv deep deep2; mv open.txt later')
    expect(['later', 'deep/later', 'deep2'].filter((path) => existsSync(join(at.workspace, path)))).toEqual([])
  })

  test('leaves the rest readable, and what lies beside its folder writable', async () => {
    using at = await box(kind)
    mkdirSync(join(at.workspace, 'free'))
    const { stdout } = await at.run('cat open.txt .hidden deep/open.txt; echo y > free/new; cat free/new')
    expect(stdout).toBe('open-bytes\nopen-bytes\nopen-bytes\ny\n')
  })
})

test.if(kinds.includes('bubblewrap'))(
  'the folder of a forbidden path stays writable, and lists the forbidden folder as empty',
  async () => {
    using at = await box('bubblewrap')
    const { stdout } = await at.run('ls -A vault; echo new > n; cat n; mkdir -p gone && echo z > gone/y && cat gone/y')
    expect(stdout).toBe('new\nz\n')
    expect(readFileSync(join(at.workspace, 'gone/y'), 'utf8')).toBe('z\n')
  },
)

test.if(kinds.includes('bubblewrap'))('a forbidden path is looked for at each command: what a link leads to may change', async () => {
  const state = { paths: [''] }
  using at = await confined({ forbiddenPaths: () => state.paths })
  writeFileSync(join(at.workspace, 'a'), 'one')
  expect((await at.run('cat a')).stdout).toBe('one')
  state.paths = [join(at.workspace, 'a')]
  expect((await at.run('cat a')).stdout).toBe('')
})

describe('which paths are held', () => {
  test('those inside the workspace, the outermost of them, and not the workspace itself', () => {
    expect(forbiddenIn('/usr', ['/usr', '/usr/bin', '/usr/bin/env', '/usr/missing', '/usr/missing/too', '/etc', '/'])).toEqual([
      '/usr/bin',
      '/usr/missing',
    ])
  })

  test('outside, those that no program needs as a whole', () => {
    const asked = ['/', '/usr', '/etc', '/usr/lib', '/usr/local/bin', '/opt', '/opt/key', '/etc/app/key', '/usr/share/app', '/w', '/w/x']
    expect(forbiddenOutside('/w/x', asked)).toEqual(['/opt/key', '/etc/app/key', '/usr/share/app'])
  })

  test('what lies in a hidden folder is not mounted besides, and hiding wins over keeping', () => {
    const guards = [
      { type: 'keep', path: '/usr/share/doc' },
      { type: 'keep', path: '/usr/lib' },
    ] as const
    const found = withForbidden({ workspace: '/usr', guards, forbidden: ['/usr/share', '/usr/lib'] })
    expect(found.ok && found.guards.map(({ type, path }) => [type, path]).toSorted()).toEqual([
      ['hide', '/usr/lib'],
      ['hide', '/usr/share'],
    ])
  })
})
