/**
 * Random changes to trees full of git's own names, judged, and compared with two others that say what git would run: a slow model written
 * differently, and for a sample the real git. Run more with FUZZ_GIT=300000.
 */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { changesBetween, type FixtureEntry, lookAt, policy, type Tree } from '../../src/security/changes/review.fixture.ts'
import { reviewChanges } from '../../src/security/changes/review-changes.ts'
import { dice } from '../support/dice.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'

const lists = Number(process.env.FUZZ_GIT ?? repetitions({ fast: 800, deep: 3_000 }))
const samples = Math.min(300, Math.ceil(lists / 100))

const plain = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n'
const configs = [
  plain,
  `${plain}[user]\n\tname = x\n`,
  `${plain}\tfsmonitor = evil\n`,
  `[alias]\n\tx = "!evil"\n${plain}`,
  `${plain}\thooksPath = tools\n`,
  '[core',
  `${plain}[include]\n\tpath = ../more\n`,
]
const roots = ['', 'lib', 'sub/.git', '.git', 'sub/deep/bare', '.git/worktrees/w', '.git/modules/m', 'lib/worktrees/w', '.git/hooks']
const contents: { readonly [name: string]: readonly FixtureEntry[] } = {
  HEAD: ['ref: refs/heads/main\n'],
  'objects/k': ['x'],
  'refs/heads/main': ['x'],
  config: [...configs, { link: '../evil' }],
  'config.worktree': configs,
  'hooks/post-commit': ['run', 'other', { link: '../../tools/x' }],
  'hooks/x.sample': ['example'],
  hooks: [{ link: '../tools' }, { link: 'tools' }],
  commondir: ['../..', '../lib', '../../../lib', '/outside/git'],
  gitdir: ['../../../sub/.git', '/outside/.git'],
  objects: [{ link: '../lib/objects' }],
  index: ['x'],
  'objects/info/alternates': ['../../lib/objects', '/outside/objects'],
}
const others: { readonly [path: string]: readonly FixtureEntry[] } = {
  'src/a.txt': ['1', '2'],
  'tools/x': ['run', 'other'],
  'tools/post-commit': ['run'],
  more: configs,
  evil: configs,
  'sub/.git': ['gitdir: ../lib', 'gitdir: ../.git/modules/m', 'gitdir: ../.git', 'gitdir: /outside/git', { link: '../lib' }],
  '.git': ['gitdir: lib', { link: 'lib' }],
  'lib/.git': ['gitdir: ..', 'gitdir: ../sub/deep/bare'],
  link: [{ link: 'lib' }, { link: '/usr/bin/env' }],
}
const candidates = [
  ...roots.flatMap((root) => Object.entries(contents).map(([name, entries]) => [root === '' ? name : `${root}/${name}`, entries] as const)),
  ...Object.entries(others),
]

/** Keeps what can be true of a file system: nothing lies below a file or link. */
function possible(entries: ReadonlyMap<string, FixtureEntry>): Tree {
  const isAbove = (path: string) => [...entries.keys()].some((other) => path.startsWith(`${other}/`))
  return Object.fromEntries([...entries].filter(([path]) => !isAbove(path)))
}

function make(seed: number): { readonly before: Tree; readonly after: Tree } {
  const roll = dice(seed)
  const pick = () => {
    const [path, entries] = candidates[roll(candidates.length)] ?? ['src/a.txt', ['1']]
    return [path, entries[roll(entries.length)] ?? ''] as const
  }
  const entries = new Map<string, FixtureEntry>()
  const whole = (root: string) => {
    for (const [name, text] of [
      ['HEAD', 'ref: refs/heads/main\n'],
      ['objects/k', 'x'],
      ['refs/heads/main', 'x'],
      ['config', plain],
    ] as const)
      entries.set(root === '' ? name : `${root}/${name}`, text)
  }
  for (let count = roll(3); count > 0; count--) whole(roots[roll(5)] ?? 'lib')
  // What already sends git elsewhere when the command starts is there by the operator's own choice.
  const isRedirect = ([path, entry]: readonly [string, FixtureEntry]) =>
    typeof entry === 'object' || (/commondir$/.test(path) && entry !== '../..')
  for (let count = roll(6); count > 0; count--) {
    const [path, entry] = pick()
    if (!isRedirect([path, entry])) entries.set(path, entry)
  }
  const before = possible(entries)
  const now = new Map(Object.entries(before))
  for (let count = 1 + roll(5); count > 0; count--) {
    if (roll(5) > 0) now.set(...pick())
    else now.delete([...now.keys()][roll(now.size || 1)] ?? '')
  }
  if (roll(4) === 0) for (const name of ['HEAD', 'objects/k', 'refs/heads/main']) now.set(`lib/${name}`, 'ref: refs/heads/main\n')
  return { before, after: possible(now) }
}

function judge(before: Tree, after: Tree) {
  return reviewChanges(changesBetween(before, after), { policy, level: 'full', approved: true, look: lookAt(before, after) })
}

/** Where a path ends when every link is followed; undefined outside or nowhere. */
function real(tree: Tree, path: string, links = 0): string | undefined {
  if (path.startsWith('/') || links > 20) return
  const done: string[] = []
  const parts = path.split('/')
  for (const [index, part] of parts.entries()) {
    if (part === '' || part === '.') continue
    if (part === '..') {
      if (done.pop() === undefined) return
      continue
    }
    const entry = tree[[...done, part].join('/')]
    if (typeof entry === 'object' && 'link' in entry)
      return entry.link.startsWith('/') ? undefined : real(tree, [...done, entry.link, ...parts.slice(index + 1)].join('/'), links + 1)
    done.push(part)
  }
  return done.join('/')
}

/** What git would read or run, told by walking the tree: settings and hooks of each folder in which it would find a repository. */
function model(tree: Tree): Set<string> {
  const folders = new Set([''])
  for (const path of Object.keys(tree)) for (let at = dirname(path); at !== '.'; at = dirname(at)) folders.add(at)
  const at = (path: string) => {
    const place = real(tree, path)
    return place === undefined ? undefined : tree[place]
  }
  const exists = (path: string) => {
    const place = real(tree, path)
    return (
      place !== undefined && (place === '' || tree[place] !== undefined || Object.keys(tree).some((each) => each.startsWith(`${place}/`)))
    )
  }
  const text = (path: string) => {
    const entry = at(path)
    return typeof entry === 'string' ? entry : undefined
  }
  const join2 = (folder: string, name: string) => (folder === '' ? name : `${folder}/${name}`)
  const found = new Set<string>()
  for (const folder of folders) {
    const dot = join2(folder, '.git')
    const file = text(dot)
    const git =
      file === undefined
        ? ['HEAD', 'objects', 'refs'].every((name) => exists(join2(dot, name))) || exists(join2(dot, 'commondir'))
          ? dot
          : folder
        : file.startsWith('gitdir: /')
          ? undefined
          : join2(folder, file.slice(8).trim())
    if (git === undefined || !exists(join2(git, 'HEAD'))) continue
    const shared = text(join2(git, 'commondir'))
    if (shared?.startsWith('/')) {
      found.add(`elsewhere ${real(tree, git)}`)
      continue
    }
    const common = shared === undefined ? git : join2(git, shared)
    if (!exists(join2(common, 'objects')) || !exists(join2(common, 'refs'))) continue
    const settings = [text(join2(common, 'config')), text(join2(common, 'config.worktree')), text(join2(git, 'config.worktree'))].filter(
      (each) => each !== undefined,
    )
    if (settings.some((each) => each.includes('include'))) settings.push(text(join2(common, '../more')) ?? '')
    for (const each of settings)
      for (const evil of ['fsmonitor', 'alias', 'hooksPath', 'include'])
        if (each.includes(evil)) found.add(`${evil} for ${real(tree, git)}`)
    const hooks = settings.some((each) => each.includes('hooksPath')) ? join2(folder, 'tools') : join2(common, 'hooks')
    const place = real(tree, hooks)
    for (const path of Object.keys(tree))
      if (place !== undefined && path.startsWith(`${place}/`) && dirname(path) === place && !path.endsWith('.sample'))
        found.add(`hook ${path} ${JSON.stringify(tree[path])}`)
  }
  return found
}

test(`of ${lists} change sets each that would make git run something new is refused`, () => {
  const told = { dangerous: 0, denied: 0, free: 0 }
  for (let seed = 1; seed <= lists; seed++) {
    const { before, after } = make(seed)
    const review = judge(before, after)
    const was = model(before)
    const more = [...model(after)].filter((each) => !was.has(each))
    told.dangerous += more.length > 0 ? 1 : 0
    told.denied += review.verdict === 'deny' ? 1 : 0
    if (more.length > 0 && review.verdict !== 'deny')
      expect({ seed, before, after, more, review }).toMatchObject({ review: { verdict: 'deny' } })
    const isPlain = changesBetween(before, after).every(({ path }) =>
      /^(?!.*hooks)(src|src\/a\.txt|.*objects\/k|.*refs\/heads\/main|.*index)$/.test(path),
    )
    if (!isPlain || model(after).size > 0) continue
    told.free += 1
    if (review.verdict === 'deny' && !review.reason.includes('repository'))
      expect({ seed, before, after, review }).toMatchObject({ review: { verdict: 'apply' } })
  }
  expect(told.dangerous).toBeGreaterThan(lists / 20)
  expect(told.free).toBeGreaterThan(lists / 100)
  expect(lists - told.denied).toBeGreaterThan(lists / 10)
}, 600_000)

function write(root: string, tree: Tree): void {
  mkdirSync(root)
  for (const [path, entry] of Object.entries(tree)) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    if (typeof entry === 'string') writeFileSync(join(root, path), entry, { mode: 0o755 })
    else if ('link' in entry) symlinkSync(entry.link, join(root, path))
  }
}

/** Programs that the real git names in any folder of a tree: settings with their values and files, and hooks. */
function asked(root: string): Set<string> {
  const found = new Set<string>()
  const folders = Bun.spawnSync(['find', root, '-type', 'd', '-print0']).stdout.toString().split('\0').slice(0, -1)
  const env = { PATH: '/usr/bin:/bin', HOME: dirname(root), GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: dirname(root) }
  const script = `for folder in "$@"; do cd "$folder" || continue; echo "@ $folder"; git config --list --show-origin; echo "hooks $(git rev-parse --path-format=absolute --git-path hooks)"; done 2>/dev/null`
  const { stdout } = Bun.spawnSync(['sh', '-c', script, 'sh', ...folders], { env, stdout: 'pipe', stderr: 'ignore' })
  for (const line of stdout.toString().split('\n')) {
    if (/\t(core\.fsmonitor|core\.hookspath|alias\.|include\.)/.test(line)) found.add(line.replace(/^file:\S*\t/, ''))
    const hooks = line.startsWith('hooks /') ? line.slice(6) : undefined
    if (hooks === undefined) continue
    if (!hooks.startsWith(root)) found.add(`hooks elsewhere: ${hooks}`)
    try {
      for (const name of readdirSync(hooks)) if (!name.endsWith('.sample')) found.add(join(realpathSync(hooks), name).slice(root.length))
    } catch {
      // There is no such folder.
    }
  }
  return found
}

test.if(needs('git'))(
  `of ${samples} sampled change sets that are let through, none makes the real git name a new program`,
  () => {
    const base = mkdtempSync(join(tmpdir(), 'braidclaw-fuzz-'))
    writeFileSync(join(base, '.gitconfig'), '[safe]\n\tdirectory = *\n')
    let tried = 0
    let named = 0
    for (let seed = 1_000_001; tried < samples; seed++) {
      const { before, after } = make(seed)
      if (judge(before, after).verdict === 'deny') continue
      tried += 1
      const [one, two] = [join(base, `${seed}-before`), join(base, `${seed}-after`)]
      write(one, before)
      write(two, after)
      const was = asked(one)
      const more = [...asked(two)].filter((each) => !was.has(each))
      named += was.size
      expect({ seed, before, after, more }).toMatchObject({ more: [] })
      rmSync(one, { recursive: true })
      rmSync(two, { recursive: true })
    }
    rmSync(base, { recursive: true })
    expect(named).toBeGreaterThan(0)
  },
  600_000,
)
