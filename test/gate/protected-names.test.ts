/** One list of names for file tools and sandbox: what each of the two does about each name, as docs/security.md tells it. */

import { describe, expect, test } from 'bun:test'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createSweep } from '../../src/host/transactions/direct-sweep.ts'
import { confined, hasBubblewrap, place, type Running } from '../../src/sandbox/fixture.ts'
import { policyWith } from '../../src/security/gate.fixture.ts'
import { judgePath } from '../../src/security/targets/path.ts'
import { protectedNames, watchedNames } from '../../src/security/targets/protected.ts'
import type { SpawnResult } from '../../src/tools/process.ts'
import { openChangeStore } from '../../src/workspace/changes/store.ts'
import { openWorkspace } from '../../src/workspace/workspace.ts'
import { isDeep } from '../support/tier.ts'
import { call, home, turn } from '../support/turns.ts'

const real = test.if(hasBubblewrap())
if (!hasBubblewrap()) console.warn('what the sandbox does about protected names is not tested: there is no bubblewrap')

/** `.git` is more than a name to the sandbox: of a repository it holds what decides which programs git runs. */
const plain = protectedNames.filter((name) => name !== '.git')
/** So many names fit into one sandbox; the fast tier tries them, the deep tier all. */
const AT_ONCE = 90
const some = isDeep ? plain : plain.slice(0, AT_ONCE)
/** As a file, and as a folder with a file in it. */
const forms = [
  ['a file', (name: string) => name],
  ['a folder', (name: string) => `${name}/inner`],
] as const

const files = (names: readonly string[], form: (name: string) => string, above = '') => names.map((name) => join(above, form(name)))
/** Writes over them, moves and takes them away, and makes them anew. */
function script(paths: readonly string[]): string {
  const quoted = (some: readonly string[]) => [...new Set(some)].map((path) => `'${path}'`).join(' ')
  const folders = paths.map((path) => dirname(path)).filter((path) => path !== '.')
  const write = `mkdir -p . ${quoted(folders)}; for path in ${quoted(paths)}; do echo evil > "$path"; done`
  return `{ ${write}; mv -f ${quoted(paths)} /tmp; rm -rf ${quoted([...paths, ...folders])}; ${write}; } 2>/dev/null; true`
}

function plant(root: string, paths: readonly string[], text: string): void {
  for (const path of paths) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

/** Runs a command on the workspace itself as a conversation does. */
function swept({ workspace, root, settings, run }: Running, script: string): Promise<SpawnResult> {
  const policy = policyWith({ autonomy: 'full', workspace, home: settings.home })
  const limits = { keepBytes: 1e9, keepDays: 30, keepSets: 100 }
  const store = openChangeStore({ folder: join(root, 'kept'), workspace, log() {}, now: Date.now, limits })
  const setup = { context: { env: {} }, paths: { home: settings.stateHome } } as unknown as Parameters<typeof createSweep>[0]['setup']
  const sweep = createSweep({
    setup,
    policy,
    originals: store.originals({ conversation: 'con_1', run: () => 'run_1' }),
    runId: () => 'run_1',
  })
  const plan = { argv: ['sh'], cwd: workspace, env: {}, signal: new AbortController().signal, view: 'direct', onOutput() {} } as const
  return sweep(plan, async () => (await run(script)).ended)
}

test('there are more names than the eighty-one that file tools and a script were once compared by', () => {
  expect(protectedNames.length).toBeGreaterThan(81)
})

describe('file tools', () => {
  test.each(isDeep ? ['', 'sub/', 'a/b/c/d/e/f/'] : ['sub/'])(
    'write none of the names in "%s", new or there, in whatever case, and say so',
    (above) => {
      const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-names-')))
      const policy = { workspace: root, workspaceOnly: true, forbiddenPaths: [], protectedPaths: [], home: '/nowhere' }
      const workspace = openWorkspace({ root, check: (path, access) => judgePath({ path, access, cwd: root, policy }) })
      const refused = { ok: false, denied: 'path.protected' }
      for (const name of protectedNames)
        for (const path of [name, name.toUpperCase(), `${name}/inner`]) {
          expect([path, workspace.writeText(above + path, 'evil')]).toEqual([path, expect.objectContaining(refused)])
          expect([path, workspace.editText(above + path, { find: 'm', put: 'evil' }).ok]).toEqual([path, false])
        }
      expect(readdirSync(root)).toEqual([])
      plant(
        root,
        files(protectedNames, (name) => name, above),
        'mine',
      )
      for (const name of protectedNames) {
        expect(workspace.writeText(above + name, 'evil')).toMatchObject(refused)
        expect(workspace.editText(above + name, { find: 'mine', put: 'evil' })).toMatchObject(refused)
        expect(workspace.readText(above + name, { maxBytes: 10 })).toMatchObject({ ok: true, text: 'mine' })
      }
      rmSync(root, { recursive: true })
    },
  )
})

describe.each(isDeep ? forms : forms.slice(1))('a script in the sandbox that writes %s', (_, form) => {
  real(
    'leaves no new protected name in the workspace itself',
    async () => {
      using box = await confined()
      for (const spelling of [(name: string) => name, (name: string) => name.toUpperCase()]) {
        await swept(box, script(files(plain.map(spelling), form)))
        for (const name of protectedNames) expect([name, existsSync(join(box.workspace, spelling(name)))]).toEqual([name, false])
      }
    },
    120_000,
  )

  real(
    'changes none that is there in the workspace itself',
    async () => {
      using ground = place()
      const paths = files(some, form)
      for (let from = 0; from < paths.length; from += AT_ONCE) {
        const now = paths.slice(from, from + AT_ONCE)
        plant(ground.workspace, now, 'mine')
        using box = await confined({ workspace: ground.workspace })
        const { ended } = await box.run(script(now), { cwd: ground.workspace })
        expect(ended).toMatchObject({ ok: true })
        for (const path of now) expect([path, readFileSync(join(ground.workspace, path), 'utf8')]).toEqual([path, 'mine'])
        for (const path of readdirSync(ground.workspace)) rmSync(join(ground.workspace, path), { recursive: true })
      }
    },
    120_000,
  )

  real(
    'changes none that is there in a folder below, but makes new ones there: that is not prevented',
    async () => {
      using ground = place()
      const paths = files(some, form, 'sub')
      for (let from = 0; from < paths.length; from += AT_ONCE) {
        const now = paths.slice(from, from + AT_ONCE)
        plant(ground.workspace, now, 'mine')
        using box = await confined({ workspace: ground.workspace })
        await box.run(script(now), { cwd: ground.workspace })
        for (const path of now) expect([path, readFileSync(join(ground.workspace, path), 'utf8')]).toEqual([path, 'mine'])
        rmSync(join(ground.workspace, 'sub'), { recursive: true })
      }
      using box = await confined()
      await box.run(script(paths))
      for (const path of paths) expect([path, existsSync(join(box.workspace, path))]).toEqual([path, true])
    },
    120_000,
  )
})

real(
  'what a command made under a protected name is dropped with all else it made; the call is denied, and result and receipt name it',
  async () => {
    using at = home()
    at.file(
      'setup.sh',
      'mkdir -p .github/workflows .husky; echo ci > .github/workflows/ci.yml; echo hook > .husky/pre-commit; echo fine > fine.txt',
    )
    const calls = [call('shell', { command: 'bash setup.sh' }), { text: 'So: {{last_tool_result}}' }]
    const { stdout, code } = await turn(at, calls, ['--autonomy', 'full'])
    expect(code).toBe(3)
    for (const name of ['.husky', '.github', 'fine.txt']) expect([name, existsSync(join(at.workspace, name))]).toEqual([name, false])
    expect(stdout).toContain('.husky/pre-commit')
    const [receipt] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
    expect(receipt).toMatchObject({ status: 'denied', changes: 'dropped', error: expect.stringContaining('.github/workflows/ci.yml') })
  },
)

describe('what a command with direct access made under a protected name', () => {
  real('is moved by the command that ends, also while another one runs; what lay there before either stays', async () => {
    using box = await confined()
    plant(box.workspace, ['.claude/settings.json'], 'mine')
    // The clock of the file system has steps of some milliseconds.
    await Bun.sleep(50)
    const long = swept(box, 'mkdir .cursor; while [ ! -e stop ]; do sleep 0.01; done')
    while (!existsSync(join(box.workspace, '.cursor'))) await Bun.sleep(5)
    expect(await swept(box, 'mkdir .codex')).toMatchObject({ refused: true, undone: [expect.stringContaining('".codex"')] })
    writeFileSync(join(box.workspace, 'stop'), '')
    expect(await long).toMatchObject({ refused: true, undone: [expect.stringContaining('".cursor"')] })
    for (const name of ['.cursor', '.codex']) expect(existsSync(join(box.workspace, name))).toBe(false)
    expect(readFileSync(join(box.workspace, '.claude/settings.json'), 'utf8')).toBe('mine')
  })

  real('in the place of a link is moved aside, and the link put back; a link on the way leads nothing outside astray', async () => {
    using box = await confined()
    mkdirSync(join(box.root, 'outside/workflows'), { recursive: true })
    mkdirSync(join(box.workspace, 'agents'))
    symlinkSync('agents', join(box.workspace, '.claude'))
    const ended = await swept(box, 'rm .claude; mkdir .claude; ln -s ../outside .github')
    expect(ended).toMatchObject({ refused: true, undone: [expect.stringContaining('".github"'), 'the link was put back: ".claude"'] })
    expect(readlinkSync(join(box.workspace, '.claude'))).toBe('agents')
    expect(lstatSync(join(box.workspace, '.github'), { throwIfNoEntry: false })).toBeUndefined()
    expect(readdirSync(join(box.root, 'outside'))).toEqual(['workflows'])
  })

  real('and nothing is touched by a command that makes none; seven place holders stand, and are gone afterwards', async () => {
    using box = await confined()
    const { stdout, ended } = await box.run('ls -A; mkdir .config .github; touch .github/labels.yml .editorconfig')
    expect(stdout.trim().split('\n')).toEqual(watchedNames.toSorted())
    expect(ended).toEqual({ ok: true, code: 0, leftBehind: false, mode: 'direct' })
    expect(readdirSync(box.workspace).toSorted()).toEqual(['.config', '.editorconfig', '.github'])
  })
})
