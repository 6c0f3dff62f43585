import { describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFixture, everything, furnish, picture } from './fixture.ts'
import { openChangeStore } from './store.ts'

describe.each([
  ['on one file system', {}],
  ['on two', { workspaceIn: '/dev/shm' }],
] as const)('%s', (_, where) => {
  test.each(['apply', 'undo'] as const)(
    'an %s that fails at any step is taken back whole, and works when it is tried again',
    async (kind) => {
      for (let nth = 2; ; nth += 3) {
        await using fixture = await createFixture(where)
        furnish(fixture)
        const set = await fixture.command(everything)
        if (kind === 'undo') await fixture.store.apply(set)
        const before = picture(fixture.root)
        const counter = { steps: 0 }
        const onStep = () => {
          if (++counter.steps === nth) throw Object.assign(new Error('no'), { code: 'EACCES' })
        }
        const doing = (store: typeof fixture.store) => (kind === 'apply' ? store.apply(set) : store.undo(set.id))
        const done = await doing(openChangeStore({ ...fixture.options, onStep }))
        if (done.ok) {
          expect(counter.steps).toBeGreaterThan(20)
          return
        }
        expect(done).toEqual({ ok: false, conflicts: [], message: 'permission denied (EACCES); nothing was changed' })
        expect({ nth, now: picture(fixture.root) }).toEqual({ nth, now: before })
        expect(await doing(fixture.store)).toMatchObject({ ok: true })
      }
    },
    120_000,
  )
})

/** Root can mount for itself alone; others need a user namespace. */
const apart = ['unshare', ...(process.getuid?.() === 0 ? ['-m'] : ['-Urm']), '--']
const canMount = Bun.spawnSync([...apart, 'mount', '-t', 'tmpfs', 'none', '/mnt']).exitCode === 0
if (!canMount) console.warn('full disks and read-only workspaces are not tested: there is no namespace of our own to mount one in')

type ChildAnswer = {
  readonly done: { readonly ok: boolean; readonly message?: string }
  readonly same: boolean
  readonly states: readonly string[]
  readonly again?: boolean
}

/** Runs in a mount namespace of its own, where it may mount what it needs. `body` sets `answer`. */
async function inNamespace(mounts: string, body: string): Promise<ChildAnswer> {
  const base = mkdtempSync(join(tmpdir(), 'braidclaw-full-'))
  const script = `
    const { createFixture, picture } = await import(${JSON.stringify(join(import.meta.dir, 'fixture.ts'))})
    const fs = await import('node:fs')
    const base = ${JSON.stringify(base)}
    let answer
    ${body}
    console.log(JSON.stringify(answer))
    process.exit(0)`
  const words = [
    ...apart,
    'sh',
    '-ec',
    `cd "$1"; mkdir small; ${mounts}; exec "$2" --config=/dev/null -e "$3"`,
    'sh',
    base,
    process.execPath,
    script,
  ]
  const child = Bun.spawn(words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const text = await new Response(child.stdout).text()
  await child.exited
  rmSync(base, { recursive: true, force: true })
  return JSON.parse(text)
}

const fills = `
  for (let n = 0; n < 8; n++) fs.writeFileSync(fixture.at('old' + n), 'old')
  const set = await fixture.command((at) => {
    for (let n = 0; n < 8; n++) { fs.mkdirSync(at('d' + n)); fs.writeFileSync(at('d' + n + '/f'), 'x'.repeat(60_000)); fs.writeFileSync(at('old' + n), 'y'.repeat(60_000)) }
  })
  const before = JSON.stringify(picture(fixture.root))`

const judged = `
  const done = await fixture.store.apply(set)
  const same = JSON.stringify(picture(fixture.root)) === before
  answer = { done, same, states: fixture.store.list().map(({ state }) => state) }`

describe('a disk', () => {
  test.if(canMount)('of the workspace that gets full in the middle leaves everything as it was', async () => {
    const answer = await inNamespace(
      'mount -t tmpfs -o size=400k none small',
      `await using fixture = await createFixture({ storeIn: base, workspaceIn: base + '/small' })
      ${fills}
      ${judged}
      const gone = fixture.store.list().length === 0
      Bun.spawnSync(['mount', '-o', 'remount,size=8m', base + '/small'])
      answer.again = gone && (await fixture.store.apply(set)).ok`,
    )
    expect(answer).toMatchObject({ same: true, states: [], again: true })
    expect(answer.done).toMatchObject({ ok: false, message: 'the disk is full (ENOSPC); nothing was changed' })
  })

  test.if(canMount)('that has no room for the plan, or for what is replaced, leaves everything as it was', async () => {
    const hogs = {
      'size=1040k': "const hog = fs.openSync(fixture.base + '/hog', 'w'); try { for (;;) fs.writeSync(hog, Buffer.alloc(1024)) } catch {}",
      'size=8m,nr_inodes=60':
        "try { for (let n = 0; ; n++) fs.writeFileSync(fixture.base + '/hog' + n, '') } catch {}; for (let n = 0; n < 3; n++) fs.unlinkSync(fixture.base + '/hog' + n)",
    }
    for (const [limit, hog] of Object.entries(hogs)) {
      const answer = await inNamespace(
        `mount -t tmpfs -o ${limit} none small`,
        `await using fixture = await createFixture({ storeIn: base + '/small', workspaceIn: base })
        ${fills}
        ${hog}
        ${judged}`,
      )
      expect(answer).toMatchObject({ same: true })
      expect(answer.done.message).toContain('ENOSPC')
    }
  })

  test.if(canMount)('that is read-only is said in words, and nothing waits to be finished', async () => {
    const answer = await inNamespace(
      'mount -t tmpfs none small',
      `await using fixture = await createFixture({ storeIn: base, workspaceIn: base + '/small' })
      ${fills}
      Bun.spawnSync(['mount', '-o', 'remount,ro', base + '/small'])
      ${judged}
      Bun.spawnSync(['mount', '-o', 'remount,rw', base + '/small'])`,
    )
    expect(answer).toMatchObject({ same: true, states: [] })
    expect(answer.done).toMatchObject({ ok: false, message: 'the file system is read-only (EROFS); nothing was changed' })
  })
})

/** Only root can become somebody else; for anybody else the other tests are that test. */
const canSwitch = process.getuid?.() === 0 && Bun.which('setpriv') !== null
const NOBODY = 65534

test.if(canSwitch)('an ordinary user commits below folders without permissions, and their modes come back', async () => {
  const base = mkdtempSync(join(tmpdir(), 'braidclaw-user-'))
  const home = join(base, 'home')
  mkdirSync(home)
  chownSync(home, NOBODY, NOBODY)
  chmodSync(base, 0o755)
  const source = join(import.meta.dir, '../..')
  await Bun.$`cp ${process.execPath} ${base}/bun && cp -r ${source}/workspace ${source}/runtime ${source}/kit ${source}/security ${base} && chmod -R a+rX ${base}`
  const script = `
    const { createFixture, picture } = await import(${JSON.stringify(join(base, 'workspace/changes/fixture.ts'))})
    const { openChangeStore } = await import(${JSON.stringify(join(base, 'workspace/changes/store.ts'))})
    const fs = await import('node:fs')
    const shown = []
    for (const stop of [0, 4, 9, 13]) {
      const fixture = await createFixture({ storeIn: ${JSON.stringify(home)} })
      const { root, at } = fixture
      const open = (of) => { for (const path of ['locked', 'locked/in', 'gone', 'new', 'new/in']) try { fs.chmodSync(of(path), 0o700) } catch {} }
      const close = (of) => { for (const path of ['locked/in', 'locked', 'gone']) try { fs.chmodSync(of(path), path === 'locked' ? 0o555 : 0) } catch {} }
      const seen = () => { const modes = ['locked', 'gone', 'new'].map((path) => fs.lstatSync(at(path), { throwIfNoEntry: false })?.mode ?? -1).map((mode) => mode < 0 ? 'none' : mode & 0o777); open(at); const all = JSON.stringify([modes, picture(root)]); close(at); try { fs.chmodSync(at('new/in'), 0); fs.chmodSync(at('new'), 0) } catch {}; return all }
      fs.mkdirSync(at('locked/in'), { recursive: true }); fs.mkdirSync(at('gone'))
      for (const path of ['locked/f', 'locked/in/f', 'gone/f']) fs.writeFileSync(at(path), 'old')
      const set = await fixture.command((inside) => {
        fs.writeFileSync(inside('locked/f'), 'new'); fs.unlinkSync(inside('locked/in/f')); fs.rmSync(inside('gone'), { recursive: true })
        fs.mkdirSync(inside('new/in'), { recursive: true }); fs.writeFileSync(inside('new/in/f'), 'new')
      })
      const made = set.changes.map((change) => change.path.startsWith('new') && change.after?.kind === 'folder' ? { ...change, after: { ...change.after, mode: 0 } } : change)
      const up = (path) => fixture.options.folder + '/' + set.id + '/up/' + path
      fs.chmodSync(up('new/in'), 0); fs.chmodSync(up('new'), 0); fs.chmodSync(up('locked'), 0o555)
      close(at)
      const before = seen()
      let steps = 0
      const store = openChangeStore({ ...fixture.options, onStep() { if (stop !== 0 && ++steps === stop) throw Object.assign(new Error('no'), { code: 'EIO' }) } })
      const done = await store.apply({ ...set, changes: made })
      const after = seen()
      const undone = done.ok ? (await fixture.store.undo(set.id)) : undefined
      shown.push({ ok: done.ok, changed: after !== before, undone: undone?.ok, same: seen() === before, modes: JSON.parse(after)[0] })
      open(at)
      await fixture[Symbol.asyncDispose]()
    }
    console.log(JSON.stringify(shown))`
  const words = [
    'setpriv',
    '--reuid',
    `${NOBODY}`,
    '--regid',
    `${NOBODY}`,
    '--clear-groups',
    join(base, 'bun'),
    '--config=/dev/null',
    '-e',
    script,
  ]
  const child = Bun.spawn(words, {
    cwd: home,
    env: { HOME: home, TMPDIR: home, PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const text = await new Response(child.stdout).text()
  await child.exited
  expect(readdirSync(home).filter((name) => name !== '.bun')).toEqual([])
  rmSync(base, { recursive: true, force: true })
  const [whole, ...failed] = JSON.parse(text)
  expect(whole).toEqual({ ok: true, changed: true, undone: true, same: true, modes: [0o555, 'none', 0] })
  for (const one of failed) expect(one).toEqual({ ok: false, changed: false, same: true, modes: [0o555, 0, 'none'] })
})

test('a folder that cannot be written is named, and the process of another user is not needed to see it', async () => {
  await using fixture = await createFixture()
  writeFileSync(fixture.at('f'), 'old')
  const set = await fixture.command((at) => writeFileSync(at('f'), 'new'))
  rmSync(join(fixture.options.folder, set.id, 'start'))
  expect(await fixture.store.apply(set)).toMatchObject({ ok: false, message: expect.stringContaining('has no mark of when it began') })
})
