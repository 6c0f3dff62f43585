/** What no command changes in a repository outside the workspace, what stops it from being applied, and where it stays read-only. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { picture } from '../../src/workspace/changes/fixture.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, call, home, turn } from '../support/turns.ts'
import { byUser, identity, repository } from './outside.ts'

const real = test.if(needs('bwrap') && needs('git'))

type Ground = { readonly main: string; readonly folder: string; readonly other: string }

/** A repository with two linked worktrees beside it, and another repository. */
function ground(at: Nest): Ground {
  const main = repository(at, 'main')
  const [folder, other] = [join(main, '../linked'), join(main, '../other')]
  for (const path of [folder, other]) byUser(at, main, 'worktree', 'add', '-q', path)
  repository(at, 'foreign')
  return { main, folder, other }
}

async function run(at: Nest, { folder }: Pick<Ground, 'folder'>, input: object, autonomy = 'full') {
  const replies = [call('shell', input), { text: 'It said: {{last_tool_result}}' }]
  return turn(at, replies, ['--autonomy', autonomy, '-C', folder], { cwd: folder, through: alone })
}

/** Lets a program do it, whose words the gate cannot see. */
function program({ folder }: Ground, script: string): { readonly command: string } {
  writeFileSync(join(folder, 'do.sh'), begin + script)
  return { command: 'bash do.sh' }
}

const pictures = ({ main, folder, other }: Ground) => [main, folder, other].map(picture)

const begin = `${identity}G=$(git rev-parse --git-dir); C=$(git rev-parse --git-common-dir); `
const evil = '$(printf evil | git hash-object -w --stdin)'

const refused: readonly (readonly [what: string, script: string, why: string])[] = [
  ['a hook', 'echo touch x > $C/hooks/pre-commit', 'hooks are programs'],
  ['a setting that runs a program', 'git config core.fsmonitor ./x', 'core.fsmonitor'],
  ['a link', 'ln -s /etc/hostname $C/refs/heads/x', 'a symbolic link in a repository'],
  ['another place of another worktree', 'echo /srv/x/.git > $C/worktrees/other/gitdir', 'sends git to another place'],
  [
    'a .git file for another repository',
    'echo "gitdir: $C/../../foreign/.git" > .git; echo x > $C/y',
    'a repository outside the workspace',
  ],
  ['a commit of a protected file', `git update-index --add --cacheinfo 100644,${evil},.envrc && git commit -qm x`, '.envrc'],
  [
    'one on the branch of another worktree',
    `git update-index --add --cacheinfo 100644,${evil},.envrc && git update-ref refs/heads/other $(git commit-tree -m x $(git write-tree))`,
    '.envrc',
  ],
]

describe('a command in a linked worktree', () => {
  real(
    'cannot change what runs programs or leads elsewhere, at any level, and nothing of its changes is applied',
    async () => {
      using at = home()
      const there = ground(at)
      for (const [what, script, why] of refused) {
        const doing = program(there, `echo 1 > new.txt; ${script}`)
        const before = pictures(there)
        const { stdout } = await run(at, there, doing)
        expect([what, stdout]).toEqual([what, expect.stringContaining('its changes were not applied')])
        expect([what, stdout]).toEqual([what, expect.stringContaining(why)])
        expect([what, pictures(there)]).toEqual([what, before])
      }
    },
    60_000,
  )

  real(
    'is asked about at every level when it brings a pack that holds other objects than its index says',
    async () => {
      using at = home()
      const there = ground(at)
      const script = `h=$(git rev-parse HEAD:a.txt); e=${evil}; p=$(echo $e | git pack-objects -q $C/objects/pack/pack)
        perl -0777 -pi -e 's/\\Q@{[pack("H*","'$e'")]}\\E/pack("H*","'$h'")/e' $C/objects/pack/pack-$p.idx`
      const doing = program(there, script)
      const before = pictures(there)
      expect(await run(at, there, doing)).toMatchObject({ code: 4 })
      expect(pictures(there)).toEqual(before)
      expect((await at.run(['approvals', 'show', 'last'])).stdout + (await at.run(['approvals', 'list'])).stdout).toContain(
        'than its index says',
      )
    },
    60_000,
  )

  real(
    'cannot write beside the git directory, nor into the repository that its .git file names from then on',
    async () => {
      using at = home()
      const there = ground(at)
      const script = 'echo "gitdir: $C/../../foreign/.git" > .git; touch $C/../x $C/../../foreign/.git/x; git status; ls -A $C/..'
      const { stdout } = await run(at, there, program(there, script))
      expect(stdout).toContain('not a git repository')
      expect(stdout).not.toContain('pkg')
      for (const path of ['../main/x', '../foreign/.git/x']) expect(existsSync(join(there.folder, path))).toBe(false)
      expect(readFileSync(join(there.folder, '.git'), 'utf8')).toContain('/main/.git/worktrees/linked')
    },
    60_000,
  )

  real(
    'is asked about in one question, which names the commit; what the user commits or stages meanwhile is never lost',
    async () => {
      using at = home()
      const there = ground(at)
      const { folder } = there
      const command = `${identity}echo 2 > a.txt && git commit -qam two`
      const meanwhile: readonly (readonly [words: readonly string[], why: string | undefined])[] = [
        [['commit', '-q', '--allow-empty', '-m', 'mine'], 'refs/heads/linked moves away from'],
        [['rm', '-q', '--cached', 'pkg/b.txt'], '/main/.git/worktrees/linked/index" was changed meanwhile'],
        [['status'], undefined],
      ]
      for (const [words, why] of meanwhile) {
        expect(await run(at, there, { command }, 'supervised')).toMatchObject({ code: 4 })
        const shown = await at.run(['changes', 'show', 'last'], { cwd: folder })
        expect(shown.stdout).toMatch(/commit [\da-f]{7} on linked in ".*\/main\/\.git": "two" by "N", 1 file/)
        expect(shown.stdout).not.toContain('objects/')
        byUser(at, folder, ...words)
        const before = pictures(there)
        const done = await at.run(['changes', 'apply', 'last', '--yes'], { cwd: folder })
        expect([words, done]).toEqual([words, expect.objectContaining({ code: why === undefined ? 0 : 1 })])
        if (why !== undefined) expect([done.stderr, pictures(there)]).toEqual([expect.stringContaining(why), before])
        byUser(at, folder, 'reset', '-q', '--', '.')
      }
      expect(byUser(at, folder, 'log', '--format=%s')).toBe('two\nmine\nthe only commit\n')
      expect(byUser(at, folder, 'status', '--porcelain')).toBe('')
    },
    60_000,
  )

  real(
    'and one in another worktree bring the same objects, and both are applied; the first is not undone while the second needs them',
    async () => {
      using at = home()
      const there = ground(at)
      const folders = [there.folder, there.other]
      for (const folder of folders)
        expect((await run(at, { folder }, { command: `${identity}echo 2 > a.txt && git commit -qam two` }, 'supervised')).code).toBe(4)
      for (const [nth, folder] of folders.entries()) {
        const ref = folders.length - nth === 2 ? '2' : 'last'
        expect(await at.run(['changes', 'apply', ref, '--yes'], { cwd: folder })).toMatchObject({ code: 0 })
        expect(byUser(at, folder, 'log', '--format=%s')).toBe('two\nthe only commit\n')
      }
      const early = await at.run(['undo', '-C', there.folder], { cwd: there.folder })
      expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining('objects are deleted that its history needs') })
      for (const folder of folders.toReversed()) {
        expect(await at.run(['undo', '-C', folder], { cwd: folder })).toMatchObject({ code: 0 })
        expect(byUser(at, folder, 'log', '--format=%s')).toBe('the only commit\n')
        expect(byUser(at, there.main, 'fsck', '--strict', '--no-dangling')).toBe('')
      }
    },
    60_000,
  )

  real(
    'does not take other worktrees for deleted ones',
    async () => {
      using at = home()
      const there = ground(at)
      for (const folder of [there.folder, there.main]) {
        const { stdout } = await run(at, { folder }, { command: 'git worktree prune -v && git worktree list && cat ../other/a.txt' })
        expect(stdout).toMatch(/other +[\da-f]+ \[other\]\n/)
        expect(stdout).not.toContain('private')
        expect(existsSync(join(there.main, '.git/worktrees/other/gitdir'))).toBe(true)
      }
    },
    60_000,
  )

  real(
    'runs the hooks of the repository in the sandbox',
    async () => {
      using at = home()
      const there = ground(at)
      const hook = join(there.main, '.git/hooks/pre-commit')
      writeFileSync(hook, '#!/bin/sh\necho checked > checked.txt; touch ~/outside; exit 1\n')
      chmodSync(hook, 0o755)
      await run(at, there, { command: `${identity}echo 2 > a.txt && git commit -qam two` })
      expect(readFileSync(join(there.folder, 'checked.txt'), 'utf8')).toBe('checked\n')
      expect(existsSync(join(at.home, 'outside'))).toBe(false)
      expect(byUser(at, there.folder, 'log', '--format=%s')).toBe('the only commit\n')
    },
    60_000,
  )
})

describe('in a worktree that lies in its bare repository', () => {
  real(
    'commands commit, neither see nor write the worktrees beside it, and write nothing else there',
    async () => {
      using at = home('', 'direct = "allow"\n')
      const bare = join(realpathSync(at.dir), 'bare')
      byUser(at, at.dir, 'clone', '-q', '--bare', repository(at, 'main'), bare)
      for (const name of ['own', 'other']) byUser(at, bare, 'worktree', 'add', '-q', name)
      writeFileSync(join(bare, 'deploy.txt'), 'mine\n')
      const folder = join(bare, 'own')
      const { stdout } = await run(
        at,
        { folder },
        { command: `${identity}echo 2 > a.txt; git commit -qam two; ls ../other; touch ../other/x` },
      )
      expect(stdout).not.toContain('pkg')
      expect(byUser(at, folder, 'log', '--format=%s')).toBe('two\nthe only commit\n')
      expect(byUser(at, folder, 'status', '--porcelain')).toBe('')
      const before = picture(bare)
      const refusal = (await run(at, { folder }, { command: 'echo 3 > a.txt; echo x > ../deploy.txt' })).stdout
      expect(refusal).toContain("it is outside the workspace, and not git's own")
      expect(picture(bare)).toEqual(before)
      const direct = (await run(at, { folder }, { command: 'git log --format=%s; echo 3 > a.txt; ls; git add a.txt', direct: true })).stdout
      expect(direct).toContain('the user adds and commits')
      expect(byUser(at, folder, 'status', '--porcelain')).toBe(' M a.txt\n')
    },
    60_000,
  )
})

describe('where no view covers the repository', () => {
  real(
    'it can be read, and what would write it says who does',
    async () => {
      using at = home('', 'direct = "allow"\n')
      const there = ground(at)
      const before = picture(there.main)
      const { stdout } = await run(at, there, { command: 'git log --format=%s; echo 2 > a.txt; git add a.txt', direct: true })
      expect(stdout).toContain('the only commit')
      expect(stdout).toContain('outside it, in')
      expect(stdout).toContain('the user adds and commits')
      expect(picture(there.main)).toEqual(before)
    },
    60_000,
  )
})

describe('in a folder of a repository', () => {
  real(
    'nothing is done where the index is split over two files, so that files beside the workspace would seem to be deleted',
    async () => {
      using at = home()
      const main = repository(at, 'main')
      for (let nth = 0; nth < 20; nth++) writeFileSync(join(main, `${nth}.txt`), '')
      byUser(at, main, 'add', '.')
      byUser(at, main, 'update-index', '--split-index')
      writeFileSync(join(main, 'pkg/c.txt'), 'c\n')
      byUser(at, main, 'add', 'pkg')
      const before = picture(main)
      const { stdout } = await run(at, { folder: join(main, 'pkg') }, { command: `${identity}git add -A; git commit -qam two` })
      expect(stdout).toContain('git works when the user starts with that folder as the workspace')
      expect(picture(main)).toEqual(before)
    },
    60_000,
  )

  real(
    'a link in the place of the folder that holds its index leads nothing outside',
    async () => {
      using at = home()
      const there = ground(at)
      const trap = join(realpathSync(at.dir), 'trap/linked/index')
      mkdirSync(join(trap, '..'), { recursive: true })
      byUser(at, there.folder, 'update-index', '--assume-unchanged', 'a.txt')
      copyFileSync(join(there.main, '.git/worktrees/linked/index'), trap)
      byUser(at, there.folder, 'update-index', '--no-assume-unchanged', 'a.txt')
      const before = readFileSync(trap)
      const pkg = { ...there, folder: join(there.folder, 'pkg') }
      const { stdout } = await run(at, pkg, program(pkg, `mv $C/worktrees $C/away && ln -s ${join(trap, '../..')} $C/worktrees`))
      expect(stdout).toContain('a symbolic link in a repository')
      expect(readFileSync(trap)).toEqual(before)
    },
    60_000,
  )

  real.each([
    ['a merge', 'git merge -q other'],
    ['a checkout', 'git checkout -q other'],
    ['a reset', 'git reset -q --hard other'],
    ['a removal', 'git rm -q --cached ../a.txt'],
  ])(
    '%s that changes files beside the workspace, where no command writes, is refused',
    async (_, command) => {
      using at = home()
      const main = repository(at, 'main')
      byUser(at, main, 'checkout', '-qb', 'other')
      for (const path of ['a.txt', 'pkg/b.txt']) writeFileSync(join(main, path), 'other\n')
      byUser(at, main, 'commit', '-qam', 'other')
      byUser(at, main, 'checkout', '-q', 'hidden')
      const before = picture(main)
      const { stdout } = await run(at, { folder: join(main, 'pkg') }, { command: `${identity}${command}` })
      expect(stdout).toContain('its index changes "a.txt" beside the workspace')
      expect(picture(main)).toEqual(before)
    },
    60_000,
  )
})
