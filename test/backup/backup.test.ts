/** Backup, restore and prune through the real executable: what is copied is whole, or is not there. */

import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Nest, Result } from '../support/cli.ts'
import { isDeep, repetitions } from '../support/tier.ts'
import { call, home, refused, scripted, turn } from '../support/turns.ts'
import { until } from '../support/until.ts'

const replies = [call('file_write', { path: 'a.md', content: 'x' }), { text: 'It is written.' }]
const full = ['--autonomy', 'full', '--agent', 'default']
const backup = (at: Nest, name: string, ...flags: readonly string[]) => at.run(['home', 'backup', join(at.dir, name), ...flags])
const restore = (at: Nest, name: string, to: string) => at.run(['home', 'restore', join(at.dir, name), '--to', join(at.dir, to)])

/** What proves a home: the digest of its turns, and its receipts. */
async function proofOf(at: Nest, folder = join(at.home, '.braidclaw')): Promise<readonly [Result, Result]> {
  const env = { BRAIDCLAW_HOME: folder }
  return [await at.run(['rebuild', '--check', '--json'], { env }), await at.run(['receipt', 'verify'], { env })]
}

test.each(['backup', 'backup.tar.gz'])('a home that is restored from %s has the same digests, and goes on', async (name) => {
  using at = home()
  await turn(at, replies, full)
  await at.run(['receipt', 'rotate'])
  await turn(at, replies, [...full, '-c'])
  const before = await proofOf(at)
  const { code, stdout } = await backup(at, name)
  expect([code, stdout]).toEqual([0, expect.stringContaining('3 receipts')])
  expect(statSync(join(at.dir, name)).mode & 0o077).toBe(0)
  expect((await restore(at, name, 'new')).code).toBe(0)
  const after = await proofOf(at, join(at.dir, 'new'))
  expect(after.map(({ code }) => code)).toEqual([0, 0])
  expect(JSON.parse(after[0].stdout)).toEqual(JSON.parse(before[0].stdout))
  expect(JSON.parse(after[0].stdout)).toMatchObject({ turns: 8, files: { files: 3 } })
  expect(after[1].stdout).toBe(before[1].stdout)
  const goesOn = await turn(at, replies, [...full, '-c'], { env: { BRAIDCLAW_HOME: join(at.dir, 'new') } })
  expect(goesOn.code).toBe(0)
  expect((await proofOf(at, join(at.dir, 'new'))).map(({ code }) => code)).toEqual([0, 0])
  // The old home was not touched by that.
  expect((await proofOf(at))[0].stdout).toBe(before[0].stdout)
})

const writes = repetitions({ fast: 4, deep: 8 })

test('a backup while turns are written is whole each time', async () => {
  using at = home()
  const { env } = scripted(at, replies)
  await turn(at, replies, full)
  const state = { over: false }
  const writing = (async () => {
    for (let each = 0; each < writes; each += 1) await at.run(['agent', '-m', 'go', ...full], { env })
    state.over = true
  })()
  const counts: number[] = []
  for (let each = 0; each < 2 || !state.over; each += 1) {
    const { code, stderr } = await backup(at, `b${each}`)
    expect([code, stderr]).toEqual([0, ''])
    expect((await restore(at, `b${each}`, `r${each}`)).code).toBe(0)
    const [rebuilt, verified] = await proofOf(at, join(at.dir, `r${each}`))
    expect([rebuilt.code, rebuilt.code === 0 ? '' : rebuilt.stdout + rebuilt.stderr, verified.code, verified.stderr]).toEqual([
      0,
      '',
      0,
      '',
    ])
    counts.push(JSON.parse(rebuilt.stdout).turns)
  }
  await writing
  expect(counts.toSorted((a, b) => a - b)).toEqual(counts)
  expect(new Set(counts).size).toBeGreaterThan(1)
}, 120_000)

test('files with keys are left out unless they are asked for; photos and open messages of chats always', async () => {
  using at = home()
  await turn(at, replies, full)
  for (const path of ['keys.env', 'config/braidclaw.env']) {
    mkdirSync(join(at.home, '.braidclaw/config'), { recursive: true })
    writeFileSync(join(at.home, '.braidclaw', path), 'OPENAI_API_KEY=sk-not-for-others-12345\n', { mode: 0o600 })
  }
  for (const path of ['tmp/telegram/photos/5/1.jpg', 'telegram/bot-1.json']) {
    mkdirSync(join(at.home, '.braidclaw', path, '..'), { recursive: true })
    writeFileSync(join(at.home, '.braidclaw', path), 'sk-not-for-others')
  }
  await backup(at, 'without')
  await backup(at, 'with', '--with-keys')
  const holders = (name: string) =>
    readdirSync(join(at.dir, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name), 'latin1').includes('sk-not-for-others'))
      .map(({ name }) => name)
      .sort()
  expect([holders('without'), holders('with')]).toEqual([[], ['braidclaw.env', 'keys.env']])
})

test('nothing is overwritten: a backup or a home that is there is refused', async () => {
  using at = home()
  await turn(at, replies, full)
  expect((await backup(at, 'b')).code).toBe(0)
  refused(await backup(at, 'b'), 1, 'exists and is not empty')
  refused(await at.run(['home', 'restore', join(at.dir, 'b')]), 1, 'exists and is not empty')
  refused(await restore(at, 'b', 'b'), 1, 'exists and is not empty')
  writeFileSync(join(at.dir, 'c.tar.gz'), 'x')
  refused(await backup(at, 'c.tar.gz'), 1, 'exists already')
  refused(await at.run(['home', 'restore', at.workspace, '--to', join(at.dir, 'r')]), 1, 'is not a backup')
})

const once: { backedUp?: Promise<Nest> } = {}
afterAll(async () => (await once.backedUp)?.[Symbol.dispose]())

/** Returns a home with a backup in "b", which all tests that alter a copy of it share. */
function backedUp(): Promise<Nest> {
  once.backedUp ??= (async () => {
    const at = home()
    await turn(at, replies, full)
    await backup(at, 'b')
    return at
  })()
  return once.backedUp
}

test.each([
  ['a changed byte', (folder: string) => appendFileSync(join(folder, 'tool_receipts.log'), ' '), 'tool_receipts.log was altered'],
  ['a cut file', (folder: string) => truncateSync(join(folder, 'memory.sqlite'), 4096), 'memory.sqlite was altered'],
  ['a file more', (folder: string) => writeFileSync(join(folder, 'rules.toml'), ''), 'rules.toml does not belong to it'],
  ['a path outside', (folder: string) => rewrite(folder, '"path": "memory.sqlite"', '"path": "../x"'), 'not a path inside'],
  ['a cut manifest', (folder: string) => truncateSync(join(folder, 'manifest.json'), 100), 'is damaged'],
])('%s: the backup is refused, and nothing is restored', async (_name, alter, says) => {
  const at = await backedUp()
  const copy = crypto.randomUUID()
  cpSync(join(at.dir, 'b'), join(at.dir, copy), { recursive: true })
  alter(join(at.dir, copy))
  refused(await restore(at, copy, 'r'), 9, says)
  expect(readdirSync(at.dir).filter((name) => name.startsWith('r'))).toEqual([])
})

function rewrite(folder: string, from: string, to: string): void {
  const path = join(folder, 'manifest.json')
  writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
}

/** A home whose copy takes so long that a signal comes in between. */
async function large(): Promise<Nest> {
  const at = home()
  await turn(at, replies, full)
  mkdirSync(join(at.home, '.braidclaw/skills'), { recursive: true })
  for (let each = 0; each < 300; each += 1) writeFileSync(join(at.home, `.braidclaw/skills/${each}`), Buffer.alloc(300_000, each))
  return at
}

const partials = (at: Nest) => readdirSync(at.dir).filter((name) => name.includes('.partial-'))

test.each(['SIGKILL', 'SIGINT'] as const)(
  '%s in the middle leaves no backup and no home, and the next one succeeds',
  async (signal) => {
    using at = await large()
    const whole = ['home', 'backup', join(at.dir, 'whole')]
    expect((await at.run(whole, { timeoutMs: 30_000 })).code).toBe(0)
    const all = [
      [['home', 'backup', join(at.dir, 'b')], 'b'],
      [['home', 'backup', join(at.dir, 'b.tar.gz')], 'b.tar.gz'],
      [['home', 'restore', join(at.dir, 'whole'), '--to', join(at.dir, 'r')], 'r'],
    ] as const
    // In the fast tier one signal meets a backup, the other one a restore.
    const some = all.slice(signal === 'SIGKILL' ? 2 : 0).slice(0, 1)
    for (const [args, name] of isDeep ? all : some) {
      const started = at.start(args, { timeoutMs: 30_000 })
      await until(() => partials(at).length > 0)
      expect(partials(at)).not.toEqual([])
      process.kill(started.pid, signal)
      const { code } = await started.result
      expect([name, code, existsSync(join(at.dir, name))]).toEqual([name, signal === 'SIGINT' ? 130 : null, false])
      if (signal === 'SIGINT') expect(partials(at)).toEqual([])
      for (const partial of partials(at))
        refused(await at.run(['home', 'restore', join(at.dir, partial), '--to', join(at.dir, 'x')]), 1, 'is not a backup')
      expect((await at.run(args, { timeoutMs: 30_000 })).code).toBe(0)
      expect(partials(at)).toEqual([])
    }
    if (existsSync(join(at.dir, 'r'))) expect((await proofOf(at, join(at.dir, 'r'))).map(({ code }) => code)).toEqual([0, 0])
  },
  120_000,
)

test('prune deletes what is older than the retention, and every receipt stays and verifies', async () => {
  using at = home()
  const secret = [call('file_write', { path: 'a.md', content: 'x' }), { text: 'The word is xylophone.' }]
  await turn(at, secret)
  await turn(at, replies, full)
  await turn(at, [{ text: 'new' }])
  const db = new Database(join(at.home, '.braidclaw/memory.sqlite'))
  db.run(
    'UPDATE conversations SET updated = updated - 20 * 86400000 WHERE conversation_id IN (SELECT conversation_id FROM conversations ORDER BY last_seq LIMIT 2)',
  )
  db.close()
  refused(await at.run(['home', 'prune']), 2, 'say how old')
  const before = await at.run(['receipt', 'list', '--json'])
  expect((await at.run(['home', 'prune', '--days', '30', '--yes'])).stdout).toStartWith('deleted 0 conversations')
  expect((await at.run(['home', 'prune', '--days', '10'])).stdout).toStartWith('2 conversations older than 10 days; --yes')
  expect((await at.run(['memory', 'search', 'xylophone', '--json'])).stdout).not.toBe('[]\n')
  const { code, stdout } = await at.run(['home', 'prune', '--days', '10', '--yes', '--json'])
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ conversations: 2, underWay: [], deleted: true })])
  expect((await at.run(['memory', 'search', 'xylophone', '--json'])).stdout).toBe('[]\n')
  expect(readFileSync(join(at.home, '.braidclaw/memory.sqlite'), 'latin1')).not.toContain('xylophone')
  expect(JSON.parse((await at.run(['memory', 'list', '--json'])).stdout)).toHaveLength(1)
  const [rebuilt, verified] = await proofOf(at)
  expect([rebuilt.code, verified.code]).toEqual([0, 0])
  const ids = (text: string) => JSON.parse(text).map(({ id }: { id: string }) => id)
  expect(ids((await at.run(['receipt', 'list', '--json'])).stdout)).toEqual(expect.arrayContaining(ids(before.stdout)))
})

test('a target that cannot be made is named', async () => {
  using at = home()
  await turn(at, replies, full)
  refused(await at.run(['home', 'backup', '/proc/none/b']), 1, '/proc/none')
})

test('a file that cannot be read ends the backup with its name, and nothing is left', async () => {
  using at = home()
  await turn(at, replies, full)
  writeFileSync(join(at.home, '.braidclaw/unreadable.md'), 'x', { mode: 0 })
  // Root reads everything, so an ordinary user tries.
  const other = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  const through = process.getuid?.() === 0 ? other : []
  if (through.length > 0) await Bun.$`chown -R 65534:65534 ${at.dir}`.quiet()
  await Bun.$`chown 0:0 ${join(at.home, '.braidclaw/unreadable.md')}`.nothrow().quiet()
  const result = await at.run(['home', 'backup', join(at.dir, 'b')], { through })
  refused(result, 1, 'unreadable.md cannot be read')
  expect(readdirSync(at.dir).filter((name) => name.startsWith('b'))).toEqual([])
})

test('a backup holds no earlier backup, wherever in the home that is, and no half-written one', async () => {
  using at = home()
  await turn(at, replies, full)
  const own = join(at.home, '.braidclaw')
  expect((await at.run(['control', 'init'])).code).toBe(0)
  mkdirSync(join(own, 'agents/default/deep/er'), { recursive: true })
  mkdirSync(join(own, 'elsewhere'))
  symlinkSync(join(own, 'elsewhere'), join(at.dir, 'linked'))
  const pathsIn = (backup: string) =>
    JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8')).files.map(({ path }: { path: string }) => path)
  expect((await at.run(['home', 'backup', join(own, 'backups/first')])).code).toBe(0)
  const first = pathsIn(join(own, 'backups/first'))
  expect(first).toContain('control/control.sqlite')
  for (const target of [
    join(own, 'second'),
    join(own, 'agents/default/deep/er/third'),
    join(at.dir, 'linked/fourth'),
    join(own, 'backups/fifth.tar.gz'),
  ])
    expect([target, (await at.run(['home', 'backup', target])).code]).toEqual([target, 0])
  expect((await at.run(['control', 'backup', join(own, 'backups/control.sqlite')])).code).toBe(0)
  cpSync(join(own, 'backups/first'), join(own, 'backups/sixth.partial-1-2'), { recursive: true })
  // Neither an archive nor a database nor a folder of somebody else is a backup.
  writeFileSync(join(own, 'agents/default/manifest.json'), '{"format": 1}')
  Bun.spawnSync(['tar', '-C', own, '-czf', join(own, 'agents/default/mine.tar.gz'), 'agents/default/manifest.json'])
  new Database(join(own, 'agents/default/mine.sqlite')).run('CREATE TABLE mine (x)')
  const last = await backup(at, 'last')
  expect([last.code, last.stderr]).toEqual([0, 'note: 6 paths left out (links, special files, backups); the manifest names them\n'])
  const added = ['agents/default/manifest.json', 'agents/default/mine.sqlite', 'agents/default/mine.tar.gz']
  expect(pathsIn(join(at.dir, 'last')).toSorted()).toEqual([...first, ...added].toSorted())
  expect((await restore(at, 'last', 'restored')).code).toBe(0)
  expect((await proofOf(at, join(at.dir, 'restored'))).map(({ code }) => code)).toEqual([0, 0])
  expect((await at.run(['home', 'restore', join(own, 'backups/fifth.tar.gz'), '--to', join(at.dir, 'again')])).code).toBe(0)
}, 120_000)
