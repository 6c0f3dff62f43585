/** Everyday git in a private view: the result is whole outside, and only what a person should see asks. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { type Ground, ground } from './hostile.ts'

const real = test.if(needs('bwrap') && needs('git'))

const identity = 'export GIT_AUTHOR_NAME=N GIT_AUTHOR_EMAIL=e@x GIT_COMMITTER_NAME=N GIT_COMMITTER_EMAIL=e@x; '
const git = (words: string) => ({ kind: 'argv', argv: ['git', ...words.split(' ')], executable: '/usr/bin/git' }) as const

async function isWhole(at: Ground, folder = '.'): Promise<void> {
  expect(at.outside(`cd ${folder} && git fsck --strict 2>&1 | grep -v '^dangling\\|^notice'; git status --porcelain`)).toBe('')
}

describe('in a private view', () => {
  real(
    'a repository is made, worked in, and whole outside after every step; only making it and changing settings asks',
    async () => {
      using at = await ground()
      const steps: readonly (readonly [script: string, verdict: string, rule: string])[] = [
        ['git init -q -b main', 'ask', 'changes.git_asks'],
        ['echo 1 > a.txt && mkdir src && echo 2 > src/b.txt && git add -A && git commit -qm one', 'apply', 'changes.harmless'],
        ['echo 3 >> a.txt && git commit -qam two && git tag v1', 'apply', 'changes.harmless'],
        ['git checkout -q -b side && echo side > c.txt && git add c.txt && git commit -qm side', 'apply', 'changes.harmless'],
        ['git checkout -q main && echo 4 > d.txt && git add d.txt && git commit -qm main', 'apply', 'changes.harmless'],
        ['echo changed > a.txt && git stash -q && git stash pop -q && git commit -qam stashed', 'apply', 'changes.harmless'],
        ['git checkout -q side && git rebase -q main', 'apply', 'changes.harmless'],
        ['git checkout -q main && git merge -q --no-edit side && git branch -q -d side', 'apply', 'changes.harmless'],
        ['git gc -q --prune=now', 'apply', 'changes.harmless'],
        ['git mv src/b.txt src/renamed.txt && git commit -qm moved', 'apply', 'changes.harmless'],
        ['git remote add origin https://example.org/x.git', 'ask', 'changes.git_asks'],
        ['git config user.name Somebody', 'ask', 'changes.git_asks'],
        ['git reset -q --hard HEAD~1', 'apply', 'changes.harmless'],
      ]
      for (const [script, verdict, rule] of steps) {
        const done = await at.apply(identity + script, { level: 'auto', approved: false })
        expect([script, done.printed, done.verdict, done.rule, done.reason]).toEqual([script, '', verdict, rule, expect.any(String)])
        await isWhole(at)
      }
      expect(readFileSync(join(at.workspace, '.git/config'), 'utf8')).toContain('url = https://example.org/x.git')
    },
    120_000,
  )

  real(
    'a linked worktree, a bare clone and a clone inside the workspace ask, and are whole',
    async () => {
      using at = await ground()
      at.own('git init -q -b main . && echo 1 > a.txt && git add a.txt && git commit -qm one')
      for (const [script, folder] of [
        ['git worktree add -q wt', 'wt'],
        ['git clone -q . /tmp/c && cp -r /tmp/c copy && rm -rf copy/.git/hooks', 'copy'],
      ] as const) {
        const done = await at.apply(identity + script, { level: 'auto', approved: false })
        expect([script, done.verdict, done.rule, done.reason]).toEqual([
          script,
          'ask',
          'changes.git_asks',
          expect.stringContaining('repository'),
        ])
        await isWhole(at, folder)
      }
      expect(await at.apply('git clone -q --bare --no-hardlinks . bare.git', { level: 'auto', approved: false })).toMatchObject({
        verdict: 'ask',
        rule: 'changes.git_asks',
      })
      expect(at.outside('cd bare.git && git fsck --strict && git log --oneline | wc -l')).toBe('1\n')
      expect(
        await at.apply(`${identity} cd wt && echo 2 > b.txt && git add b.txt && git commit -qm two`, { level: 'auto', approved: false }),
      ).toMatchObject({ verdict: 'apply', rule: 'changes.harmless' })
      await isWhole(at, 'wt')
    },
    120_000,
  )

  real(
    'a stopped rebase goes on, there and outside',
    async () => {
      using at = await ground()
      at.own(
        'git init -q -b main . && echo 1 > a.txt && git add a.txt && git commit -qm one && git checkout -q -b x && echo 2 > a.txt && git commit -qam two && git checkout -q main && echo 3 > a.txt && git commit -qam three',
      )
      const stopped = await at.apply(`${identity} git checkout -q x && git rebase -q main`, { level: 'auto', approved: false })
      expect([stopped.verdict, stopped.rule, stopped.reason]).toEqual(['apply', 'changes.harmless', expect.any(String)])
      const goesOn = await at.apply(`${identity} echo both > a.txt && git add a.txt && GIT_EDITOR=true git rebase --continue`, {
        level: 'auto',
        approved: false,
      })
      expect(goesOn).toMatchObject({ verdict: 'apply', rule: 'changes.harmless' })
      await isWhole(at)
      expect(at.outside('git log --format=%s')).toBe('two\nthree\none\n')
    },
    120_000,
  )
})

describe('a plain git command', () => {
  real(
    'may bring a protected name of the history, and change what it is for, after a question at every level',
    async () => {
      using at = await ground()
      at.own(
        'git init -q -b main . && echo 1 > a.txt && git add a.txt && git commit -qm one && git checkout -q -b ci && mkdir -p .github/workflows && echo x > .github/workflows/ci.yml && git add . && git commit -qm ci && git checkout -q main',
      )
      const level = 'full'
      expect(await at.judge('git checkout -q ci', { level, approved: false })).toMatchObject({ verdict: 'deny', rule: 'changes.protected' })
      const asked = await at.judge('git checkout -q ci', { level, approved: false, command: git('checkout -q ci') })
      expect(asked).toMatchObject({ verdict: 'ask', rule: 'changes.git_asks', reason: expect.stringContaining('.github/workflows/ci.yml') })
      expect(await at.judge('git checkout -q ci', { level, command: git('checkout -q ci') })).toMatchObject({ verdict: 'apply' })
      expect(await at.judge('git config pull.rebase true', { level, approved: false })).toMatchObject({
        verdict: 'deny',
        rule: 'changes.git',
      })
      const config = await at.judge('git config pull.rebase true', { level, approved: false, command: git('config pull.rebase true') })
      expect(config).toMatchObject({
        verdict: 'ask',
        rule: 'changes.git_asks',
        reason: expect.stringContaining('"git config" changes settings of git: pull.rebase'),
      })
      for (const words of [
        'config core.fsmonitor ./x',
        'config alias.x !rm',
        'config core.hooksPath tools',
        'config diff.diff.textconv x',
        'config remote.o.url ext::sh',
      ])
        expect([words, await at.judge(`git ${words.replace('!', '\\!')}`, { command: git(words) })]).toEqual([
          words,
          expect.objectContaining({ verdict: 'deny', rule: 'changes.git' }),
        ])
    },
    120_000,
  )
})
