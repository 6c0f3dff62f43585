import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { policyWith } from '../../security/gate.fixture.ts'
import type { SpawnPlan } from '../../tools/process.ts'
import { openChangeStore } from '../../workspace/changes/store.ts'
import { removeTree } from '../../workspace/changes/tree/tree.ts'
import { createSweep } from './direct-sweep.ts'

type Options = { readonly before?: (at: string) => void; readonly keeps?: boolean; readonly entries?: number; readonly view?: 'direct' }

/** Runs this as the command, in the process of the test. */
async function swept(command: (at: string) => void, { before, keeps = true, entries = 1_000, view = 'direct' }: Options = {}) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-sweep-')))
  const [workspace, home] = [join(base, 'workspace'), join(base, 'home')]
  for (const folder of [workspace, home]) mkdirSync(folder)
  before?.(workspace)
  const policy = policyWith({ autonomy: 'full', workspace, home })
  const limits = { keepBytes: 1e9, keepDays: 30, keepSets: 100 }
  const store = openChangeStore({ folder: keeps ? join(base, 'changes') : '/dev/null/changes', workspace, log() {}, now: Date.now, limits })
  const setup = { context: { env: {} }, paths: { home } } as unknown as Parameters<typeof createSweep>[0]['setup']
  const originals = store.originals({ conversation: 'con_1', run: () => 'run_1' })
  const sweep = createSweep({ setup, policy, originals, runId: () => 'run_1', bounds: { entries, ms: 60_000, changes: 1_000 } })
  const plan: SpawnPlan = { argv: ['make'], cwd: workspace, env: {}, signal: new AbortController().signal, view, onOutput() {} }
  const ended = await sweep(plan, async () => {
    command(workspace)
    return { ok: true, code: 0, leftBehind: false }
  })
  const { refused = false, undone = [] } = ended.ok ? ended : {}
  const at = (path: string) => join(workspace, path)
  return { refused, said: undone.join('\n'), at, store, [Symbol.asyncDispose]: () => removeTree(base) }
}

const repository = (at: string, config = '[core]\n\tbare = false\n') => {
  for (const folder of ['objects', 'refs']) mkdirSync(join(at, folder), { recursive: true })
  writeFileSync(join(at, 'HEAD'), 'ref: refs/heads/m\n')
  writeFileSync(join(at, 'config'), config)
}
const evil = '[core]\n\tfsmonitor = touch x\n'

test('ordinary work, a new harmless repository and what was there before are left alone', async () => {
  await using done = await swept(
    (at) => {
      writeFileSync(join(at, 'a.ts'), 'x')
      repository(join(at, 'lib/.git'))
    },
    { before: (at) => mkdirSync(join(at, 'deep/.vscode'), { recursive: true }) },
  )
  expect([done.refused, done.said, existsSync(done.at('lib/.git/HEAD')), existsSync(done.at('deep/.vscode'))]).toEqual([
    false,
    '',
    true,
    true,
  ])
})

test('settings of an old repository that changed are moved aside alone, whatever they were', async () => {
  await using done = await swept((at) => writeFileSync(join(at, 'lib/.git/config'), evil), {
    before: (at) => repository(join(at, 'lib/.git')),
  })
  expect([done.refused, readdirSync(done.at('lib/.git')).toSorted()]).toEqual([true, ['HEAD', 'objects', 'refs']])
  const [set] = done.store.list()
  expect(done.said).toContain(`braidclaw undo run_1/${set?.about.call}`)
  expect(await done.store.undo(set?.id ?? '')).toMatchObject({ ok: true })
  expect(readFileSync(done.at('lib/.git/config'), 'utf8')).toBe(evil)
})

test('a workspace that becomes a repository itself keeps everything but the programs', async () => {
  await using done = await swept((at) => repository(at, evil), { before: (at) => writeFileSync(join(at, 'mine'), 'x') })
  expect([done.refused, existsSync(done.at('config')), existsSync(done.at('mine'))]).toEqual([true, false, true])
})

test('a command that leaves more than is looked over is denied; in a workspace that was as large before it fails with a warning', async () => {
  const fill = (at: string) => {
    for (let each = 0; each < 60; each++) writeFileSync(join(at, `f${each}`), '')
  }
  await using made = await swept(fill, { entries: 50 })
  expect([made.refused, made.said]).toEqual([true, expect.stringContaining('more than could be looked over')])
  const before = (at: string) => {
    fill(at)
    Bun.spawnSync(['sh', '-c', 'for d in 1 2 3 4 5; do mkdir d$d; echo mine > d$d/.envrc; done; sleep 0.02'], { cwd: at })
  }
  await using there = await swept((at) => Bun.spawnSync(['sh', '-c', 'unlink f1; unlink f2; unlink f3'], { cwd: at }), {
    entries: 68,
    before,
  })
  expect([there.refused, there.said]).toEqual([false, expect.stringContaining('too large to be looked over')])
})

test('what cannot be kept gets another name where it lies', async () => {
  await using done = await swept(
    (at) => {
      mkdirSync(join(at, 'a/b'), { recursive: true })
      writeFileSync(join(at, 'a/b/.envrc'), 'x')
    },
    { keeps: false },
  )
  expect([done.refused, readdirSync(done.at('a/b'))]).toEqual([true, [expect.stringMatching(/^\.envrc\.aside-/)]])
  expect(done.said).toContain('could not be kept')
})

test('a folder that nobody may list counts as not looked over; place holders of other commands stay, unless they are filled', async () => {
  await using done = await swept((at) => {
    for (const name of ['.idea', '.vscode']) {
      mkdirSync(join(at, name))
      chmodSync(join(at, name), 0o1700)
    }
    writeFileSync(join(at, '.vscode/tasks.json'), '{}')
    mkdirSync(join(at, 'shut'))
    chmodSync(join(at, 'shut'), 0)
  })
  expect([done.refused, existsSync(done.at('.idea')), existsSync(done.at('.vscode'))]).toEqual([true, true, false])
  if (process.geteuid?.() !== 0) expect(done.said).toContain('more than could be looked over')
  chmodSync(done.at('shut'), 0o700)
})
