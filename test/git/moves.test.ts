/** Files that travel inside git's own data, and history that gets lost: what commits, stashes and the index bring is judged like files. */

import { describe, expect, test } from 'bun:test'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { type Ground, ground, type Judged } from './hostile.ts'

const real = test.if(needs('bwrap') && needs('git'))
const identity = 'export GIT_AUTHOR_NAME=N GIT_AUTHOR_EMAIL=e@x GIT_COMMITTER_NAME=N GIT_COMMITTER_EMAIL=e@x; '
const auto = { level: 'auto', approved: false } as const
const full = { level: 'full', approved: false } as const
const begun = 'git init -q -b main . && echo 1 > a.txt && echo all: > Makefile && git add . && git commit -qm one'

const blob = (text: string) => `$(printf '%s' '${text}' | git hash-object -w --stdin)`
const stage = (path: string, mode = '100644') => `git update-index --add --cacheinfo ${mode},${blob('evil')},${path}\n`
const tree = (path: string) =>
  `GIT_INDEX_FILE=/tmp/i git read-tree HEAD && GIT_INDEX_FILE=/tmp/i git update-index --add --cacheinfo 100755,${blob('evil')},${path} && t=$(GIT_INDEX_FILE=/tmp/i git write-tree)`
const planted = (path = '.envrc') => `${tree(path)} && c=$(git commit-tree -p HEAD -m harmless $t)`

async function on<T>(before: string, use: (at: Ground) => Promise<T>): Promise<T> {
  using at = await ground()
  at.own(before)
  return await use(at)
}

const told = ({ verdict, rule, reason }: Judged) => ({ verdict, rule, reason })

describe('files inside the objects of git', () => {
  real(
    'a script that commits protected files past the work tree is refused at every level, and the paths are named',
    () =>
      on(begun, async (at) => {
        const script = `${stage('.envrc', '100755')}${stage('.vscode/tasks.json')}${stage('.husky/pre-commit', '100755')}${stage('.github/workflows/deploy.yml')}git commit -qm fix && git update-index --skip-worktree .envrc`
        for (const level of ['supervised', 'auto', 'full'] as const) {
          const judged = await at.judge(identity + script, { level, approved: false })
          expect(told(judged)).toMatchObject({ verdict: 'deny', rule: 'changes.protected' })
          for (const path of ['.envrc', '.vscode/tasks.json', '.husky/pre-commit', '.github/workflows/deploy.yml', 'commit '])
            expect(judged.reason).toContain(path)
        }
      }),
    120_000,
  )

  const ways: { readonly [name: string]: string } = {
    'without the index, by update-ref': `${planted()} && git update-ref refs/heads/main $c`,
    'in a pack': `${planted()} && git branch other $c && git repack -adq`,
    'as a stash': `${planted()} && git stash store -m x $c`,
    'in the index alone': stage('.envrc'),
    'in the list of a stopped rebase': `${planted()} && mkdir -p .git/rebase-merge && echo "pick $c x" > .git/rebase-merge/git-rebase-todo`,
  }
  const more: { readonly [name: string]: string } = {
    'on a new branch': `${planted()} && git branch other $c`,
    'in a packed reference': `${planted()} && git branch other $c && git pack-refs --all`,
    'below the top of the stashes': `${planted()} && git stash store -m x $c && git stash store -m y $(git commit-tree -p HEAD -m y HEAD^{tree})`,
    'under a commit that takes it out again': `${planted()} && git update-ref refs/heads/main $(git commit-tree -p $c -m back HEAD^{tree})`,
    'in an annotated tag': `${planted()} && git tag -am x v1 $c`,
    'in a tag of a tree': `${planted()} && git tag v1 $t`,
    'in a log of HEAD': `${planted()} && echo "$(git rev-parse HEAD) $c N <e@x> 1 +0000	x" >> .git/logs/HEAD`,
    'in a file that git takes for a branch': `${planted()} && echo $c > .git/main`,
    'as a replaced object': `${planted()} && git replace HEAD $c`,
    'in a tracking reference': `${planted()} && git update-ref refs/remotes/origin/main $c`,
    'in a detached HEAD': `${planted()} && git update-ref --no-deref HEAD $c`,
    'in another spelling': `${planted('.ENVRC')} && git branch other $c`,
    'in a folder': `${planted('deep/er/.envrc')} && git branch other $c`,
    'in a name beside one that is no UTF-8': `${planted("$(printf 'x\\377/.envrc')")} && git branch other $c`,
    'in a merge that no parent has': `${planted()} && git update-ref refs/heads/main $(git commit-tree -p HEAD -p $(git commit-tree -p HEAD -m side HEAD^{tree}) -m merge $t)`,
  }
  for (const [name, script] of Object.entries(isDeep ? { ...ways, ...more } : ways))
    real(
      `a protected file is refused ${name}`,
      () =>
        on(begun, async (at) => {
          const judged = await at.judge(identity + script, full)
          expect([judged.printed, told(judged)]).toEqual([
            '',
            { verdict: 'deny', rule: 'changes.protected', reason: expect.stringMatching(/envrc/i) },
          ])
        }),
      120_000,
    )

  real(
    'objects in one set and the reference in the next are found in the second',
    () =>
      on(begun, async (at) => {
        const first = await at.apply(`${identity}${planted()} && echo $c > c.txt`, auto)
        expect(told(first)).toMatchObject({ verdict: 'apply' })
        expect(told(await at.judge('git update-ref refs/heads/main $(cat c.txt)', full))).toMatchObject({
          verdict: 'deny',
          rule: 'changes.protected',
        })
        expect(
          told(await at.judge('git update-index --add --cacheinfo 100644,$(git rev-parse $(cat c.txt):.envrc),.envrc', full)),
        ).toMatchObject({ verdict: 'deny' })
      }),
    120_000,
  )

  real(
    'a reference in one set and the object in the next asks in the first, also in full',
    () =>
      on(begun, async (at) => {
        const judged = await at.judge(`echo ${'12'.repeat(20)} > .git/refs/heads/x`, full)
        expect(told(judged)).toMatchObject({ verdict: 'ask', rule: 'changes.git_asks', reason: expect.stringContaining('missing') })
      }),
    120_000,
  )

  const kinds = [
    ['a repository with sha256', 'git init -q --object-format=sha256 -b main . && echo 1 > a.txt && git add . && git commit -qm one', '.'],
    ['a bare repository with an ordinary name', `${begun} && git clone -q --bare . data`, 'data'],
  ] as const
  const moreKinds = [
    ['a linked worktree', `${begun} && git worktree add -q wt`, 'wt'],
    ['a repository with packed objects and references', `${begun} && git gc -q`, '.'],
    ['a repository that borrows objects', `${begun} && git clone -q --shared . sub`, 'sub'],
    ['a submodule', `${begun} && git -c protocol.file.allow=always submodule --quiet add "$PWD" sub && git commit -qm sub`, 'sub'],
  ] as const
  real.each(isDeep ? [...kinds, ...moreKinds] : kinds)(
    'a protected file is refused in %s',
    (_, before, folder) =>
      on(before, async (at) => {
        const judged = await at.judge(`${identity}cd ${folder} && ${planted()} && git update-ref refs/heads/x $c`, full)
        expect([judged.printed, told(judged)]).toEqual([
          '',
          { verdict: 'deny', rule: 'changes.protected', reason: expect.stringContaining('.envrc') },
        ])
      }),
    120_000,
  )

  real(
    'what development tools run asks in --auto, also an executable, a link and a submodule',
    () =>
      on(`${begun} && printf x > run && echo {} > package.json`, async (at) => {
        for (const [path, mode] of [
          ['GNUmakefile', '100644'],
          ['Makefile', '100644'],
          ['package.json', '100644'],
          ['run', '100755'],
          ['l', '120000'],
          ['sub', '160000'],
        ])
          expect([
            path,
            told(
              await at.judge(
                `${identity}git update-index --add --cacheinfo ${mode},${mode === '160000' ? '$(git rev-parse HEAD)' : blob('x')},${path} && git commit -qm x`,
                auto,
              ),
            ),
          ]).toEqual([path, { verdict: 'ask', rule: expect.any(String), reason: expect.stringContaining(`"${path}"`) }])
      }),
    120_000,
  )

  real(
    'a tree with a folder .git, and a damaged one, are refused or ask, also in full',
    () =>
      on(begun, async (at) => {
        const commit = (entries: string) => `${identity}git branch x $(git commit-tree -m x $(printf '${entries}' | git mktree))`
        const folder = `040000 tree '$(printf "100644 blob $(git rev-parse HEAD:a.txt)\\tconfig\\n" | git mktree)'\\t.git\\n`
        expect(told(await at.judge(commit(folder), full))).toMatchObject({
          verdict: 'deny',
          reason: expect.stringContaining('.git/config'),
        })
        const entry = (name: string) => `100644 blob '$(git rev-parse HEAD:a.txt)'\\t${name}\\n`
        expect(told(await at.judge(commit(entry('b') + entry('b')), full))).toMatchObject({
          verdict: 'ask',
          reason: expect.stringContaining('damaged'),
        })
      }),
    120_000,
  )

  real(
    'a new worktree, and a submodule, are compared with what the repository held before',
    () =>
      on(`${begun} && echo x > .envrc && git add . && git commit -qm two`, async (at) => {
        const command = { kind: 'argv', argv: ['git', 'worktree', 'add', 'wt'], executable: '/usr/bin/git' } as const
        const judged = await at.judge('git worktree add -q wt', { ...auto, command })
        expect(told(judged)).toEqual({ verdict: 'ask', rule: 'changes.git_asks', reason: expect.not.stringContaining(' holds it') })
        at.own('git -c protocol.file.allow=always submodule --quiet add "$PWD" sub && git commit -qm sub')
        const script = `${identity}cd sub && git update-index --add --cacheinfo 100644,${blob('x')},Rakefile && git commit -qm x`
        expect(told(await at.judge(script, auto))).toMatchObject({ verdict: 'ask', reason: expect.stringContaining('Rakefile') })
      }),
    120_000,
  )

  real(
    'bits that hide changes from git, grafts and replaced objects ask',
    () =>
      on(begun, async (at) => {
        for (const [script, reason] of [
          ['git update-index --skip-worktree a.txt', 'skip-worktree'],
          ['git update-index --assume-unchanged a.txt', 'assume-unchanged'],
          ['echo "$(git rev-parse HEAD)" > .git/info/grafts', 'grafts'],
          [`${identity}git replace HEAD $(git commit-tree -m x HEAD^{tree})`, 'replace'],
        ] as const)
          expect([script, told(await at.judge(script, auto))]).toEqual([
            script,
            { verdict: 'ask', rule: 'changes.git_asks', reason: expect.stringContaining(reason) },
          ])
      }),
    120_000,
  )
})

describe('what git believes of its objects', () => {
  const lying = `h=$(git rev-parse HEAD:Makefile) && e=${blob('evil')} && p=$(printf '%s\\n' $e | git pack-objects -q .git/objects/pack/pack) && perl -0777 -pi -e 's/\\Q@{[pack("H*","'$e'")]}\\E/pack("H*","'$h'")/e' .git/objects/pack/pack-$p.idx`
  real(
    'a pack whose index shows other content under an older id asks, also in full; honest packs ask nothing',
    () =>
      on(begun, async (at) => {
        expect(told(await at.judge(`chmod -R u+w .git/objects; ${lying}`, full))).toMatchObject({
          verdict: 'ask',
          reason: expect.stringContaining('than its index says'),
        })
        expect(told(await at.apply('git gc -q', auto))).toMatchObject({ verdict: 'apply' })
        expect(
          told(
            await at.judge(
              'chmod u+w .git/objects/info/commit-graph && perl -0777 -pi -e "s/CDAT(.{8})(.{20})/CDAT/s; s/(.{100})\\z/x\\1/s" .git/objects/info/commit-graph',
              full,
            ),
          ),
        ).toMatchObject({ verdict: 'ask', reason: expect.stringContaining('commit-graph') })
      }),
    120_000,
  )

  real(
    'broken objects, an index that is not understood and too many objects ask, also in full',
    () =>
      on(begun, async (at) => {
        const cut = 'f=.git/objects/$(echo $c | sed "s,..,&/,") && chmod u+w $f && echo broken > $f'
        for (const [script, reason] of [
          [`${planted('b')} && ${cut} && git update-ref refs/heads/x $c 2>/dev/null || echo $c > .git/refs/heads/x`, 'missing, broken'],
          [
            `${planted()} && cd .git/objects && f() { echo $1 | sed 's,..,&/,'; } && chmod u+w $(f $t) && cp $(f $(git rev-parse HEAD^{tree})) $(f $t) && git update-ref refs/heads/x $c`,
            'missing, broken',
          ],
          ['echo DIRCbroken > .git/index', 'index is not understood'],
          ['git update-index --split-index && echo 2 > a.txt && git add a.txt', 'index is not understood'],
          ['mkdir .git/reftable && echo x > .git/reftable/tables.list', 'reftable'],
        ] as const)
          expect([script, told(await at.judge(identity + script, full))]).toEqual([
            script,
            expect.objectContaining({ verdict: 'ask', reason: expect.stringContaining(reason) }),
          ])
      }),
    120_000,
  )
})

describe('honest work', () => {
  const kept = `${begun} && mkdir .github .github/workflows && echo x > .github/workflows/ci.yml && echo y > .envrc && git add . && git commit -qm two`

  real(
    'with protected files in the history asks nothing in --auto',
    () =>
      on(
        `${kept} && git checkout -q -b side && echo 3 > c.txt && git add c.txt && git commit -qm three && echo 4 > c.txt && git commit -qam four && git checkout -q main && echo 5 > d.txt && git add d.txt && git commit -qm five && git checkout -q -b tools HEAD~1 && echo x > GNUmakefile && git add . && git commit -qm tools && git checkout -q main`,
        async (at) => {
          for (const script of [
            'echo 2 > a.txt && git commit -qam keeps',
            'git commit -q --amend -m other',
            'git merge -q --no-edit side',
            'git reset -q --hard HEAD~1',
            'git checkout -q tools && git rebase -q main && git checkout -q main',
            'git checkout -q side && git rebase -q main && git checkout -q main',
            'git checkout -q -b new HEAD~1 && git tag v1 && git checkout -q main',
            'echo more > a.txt && git stash -q',
            'git stash pop -q',
            'git branch -q -D new',
            'git gc -q && git pack-refs --all',
            'git repack -adq --depth=5',
            'git switch -q side && echo 1 > e.txt && git add e.txt && git commit -qm e && git switch -q main && git cherry-pick side >/dev/null',
            'git reset -q --soft HEAD~1 && git commit -qm squashed',
          ]) {
            const judged = await at.apply(identity + script, auto)
            expect([script, judged.printed, told(judged)]).toEqual([
              script,
              '',
              { verdict: 'apply', rule: 'changes.harmless', reason: expect.any(String) },
            ])
          }
        },
      ),
    120_000,
  )

  real(
    'may commit what stands in the work tree: a file of the person, and one that was asked about as a file',
    () =>
      on(kept, async (at) => {
        at.own('echo edited > .envrc && echo edited > Makefile && echo new > GNUmakefile && echo own > .npmrc')
        expect(told(await at.judge(`${identity}git add .envrc Makefile GNUmakefile && git commit -qm x`, auto))).toMatchObject({
          verdict: 'apply',
        })
        expect(
          told(
            await at.judge(`${identity}git stash -q`, {
              ...auto,
              command: { kind: 'argv', argv: ['git', 'stash'], executable: '/usr/bin/git' },
            }),
          ).reason,
        ).not.toContain('index')
        const untracked = await at.judge(`${identity}git add .npmrc && git commit -qm x`, auto)
        expect(told(untracked)).toMatchObject({ verdict: 'ask', reason: expect.stringContaining('no commit held it before') })
        const both = await at.judge(`${identity}echo z > Rakefile && git add Rakefile && git commit -qm x`, auto)
        expect(told(both)).toMatchObject({ verdict: 'ask', rule: 'changes.not_harmless', reason: expect.not.stringContaining('commit ') })
      }),
    120_000,
  )
})

describe('history', () => {
  real(
    'that gets lost asks in --auto and is applied in full',
    () =>
      on(
        `${begun} && git checkout -q -b side && echo 2 > b.txt && git add b.txt && git commit -qm side && git checkout -q main && echo 3 > a.txt && git commit -qam three`,
        async (at) => {
          for (const [script, reason] of [
            [
              'git branch -f side $(git commit-tree -m orphan HEAD^{tree}) && git reflog expire --expire=now --all && git gc -q --prune=now',
              'nothing',
            ],
            [
              'git update-ref refs/heads/main $(git commit-tree -m orphan HEAD^{tree}) && rm -r .git/logs',
              'refs/heads/main moves away from',
            ],
            [
              `o=$(git rev-parse HEAD) && git update-ref refs/heads/main $(git commit-tree -m orphan HEAD^{tree}) && echo "${'0'.repeat(40)} $(git rev-parse HEAD) n <e> $(date +%s) +0000\t$o" > .git/logs/HEAD && cp .git/logs/HEAD .git/logs/refs/heads/main`,
              'refs/heads/main moves away from',
            ],
            [
              `o=$(git rev-parse HEAD) && git update-ref refs/heads/main $(git commit-tree -m orphan HEAD^{tree}) && echo "$o $(git rev-parse HEAD) n <e> 1000000000 +0000" > .git/logs/HEAD && rm -r .git/logs/refs`,
              'refs/heads/main moves away from',
            ],
            [
              `o=$(git rev-parse HEAD) && c=$(printf 'tree %s\\nauthor n <e> 1 +0000\\ncommitter n <e> 1 +0000\\nparent %s\\n\\nx\\n' $(git rev-parse HEAD^{tree}) $o | git hash-object --literally -t commit -w --stdin) && rm -r .git/logs && echo $c > .git/refs/heads/main`,
              'refs/heads/main moves away from',
            ],
            ['git branch -q -D side', 'refs/heads/side is deleted'],
            ['rm .git/refs/heads/side', 'refs/heads/side is deleted'],
            ['git commit -q --amend -m x && rm -r .git/logs', 'nothing holds'],
            ['echo 4 > a.txt && git stash -q && git stash drop -q', undefined],
            ['rm -rf .git/objects/$(git rev-parse HEAD | cut -c1-2)', 'its history needs'],
            ['rm -rf .git/objects/$(git rev-parse side:b.txt | cut -c1-2)', 'its history needs'],
          ] as const) {
            const judged = await at.judge(identity + script, auto)
            const expected =
              reason === undefined
                ? { verdict: 'apply' }
                : { verdict: 'ask', rule: 'changes.git_asks', reason: expect.stringContaining(reason) }
            expect([script, judged.printed, told(judged)]).toEqual([script, '', expect.objectContaining(expected)])
            if (reason !== undefined) expect(told(await at.judge(identity + script, full))).toMatchObject({ verdict: 'apply' })
          }
          at.own('git commit -q --amend -m four && echo 4 > a.txt && git stash -q')
          expect(told(await at.judge('git stash drop -q', auto))).toMatchObject({
            verdict: 'ask',
            reason: expect.stringContaining('stash'),
          })
          expect(told(await at.judge('git reflog expire --expire=now --all', auto))).toMatchObject({
            verdict: 'ask',
            reason: expect.stringContaining('logs forget'),
          })
        },
      ),
    120_000,
  )
})
